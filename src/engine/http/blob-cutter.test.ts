import { expect, test } from "vitest";
import { Base64Reader } from "./base64-reader.ts";
import { BlobCutter } from "./blob-cutter.ts";
import { ReplyProblem } from "./reply-reading.ts";

const blob = Buffer.from(Uint8Array.from({ length: 301 }, (_, index) => index % 256));
const base64 = blob.toString("base64");

function open(limitBytes = 1_000): BlobCutter<Base64Reader> {
  return new BlobCutter({
    routed_experts: () => new Base64Reader({ name: "routed_experts", limitBytes }),
    indexer_topk: () => new Base64Reader({ name: "indexer_topk", limitBytes }),
  });
}

/** Cuts a text that arrives in parts, and returns the rest. */
function cut(cutter: BlobCutter<Base64Reader>, text: string, partLength: number): string {
  const bytes = Buffer.from(text);
  const rest: Buffer[] = [];
  for (let place = 0; place < bytes.length; place += partLength) {
    rest.push(...cutter.take(bytes.subarray(place, place + partLength)));
  }
  return Buffer.concat([...rest, cutter.end()]).toString();
}

const lengths = [1, 2, 3, 7, 16, 17, 64, 100_000];

test.each(lengths)("texts are cut out of a reply in parts of %i bytes", (partLength) => {
  const reply = { text: "é", meta_info: { indexer_topk: "", routed_experts: base64, last: 1 } };
  const cutter = open();
  const rest = JSON.parse(cut(cutter, JSON.stringify(reply), partLength)) as typeof reply;
  expect(rest.text).toBe("é");
  expect(rest.meta_info.last).toBe(1);
  const routes = cutter.readerOf(rest.meta_info.routed_experts)!;
  expect(Buffer.concat(routes.takeChunks())).toEqual(blob);
  const positions = cutter.readerOf(rest.meta_info.indexer_topk)!;
  expect(Buffer.concat(positions.takeChunks())).toEqual(Buffer.alloc(0));
});

test("texts of each length are decoded", () => {
  for (let size = 0; size <= 200; size++) {
    const text = blob.subarray(0, size).toString("base64");
    for (const partLength of [1, 5, 63, 64, 65, 1_000]) {
      const cutter = open();
      cut(cutter, `{"routed_experts":"${text}"}`, partLength);
      const read = Buffer.concat(cutter.readerOf("0")!.takeChunks());
      expect(read.equals(blob.subarray(0, size))).toBe(true);
    }
  }
});

test.each(lengths)("other members stay as they are, in parts of %i bytes", (partLength) => {
  const fooling = [
    '"routed_experts":"AAAA"',
    '\\"routed_experts":"AAAA"',
    "routed_experts",
    '{"routed_experts": "AAAA"}',
    String.raw`\\"routed_experts\\":\\"AAAA`,
  ];
  const text = JSON.stringify({
    fooling,
    routed_experts: null,
    inner: { routed_experts: { data: "AAAA" }, list: ["routed_experts", "AAAA"] },
    "not routed_experts": "AAAA",
  });
  const cutter = open();
  expect(cut(cutter, text, partLength)).toBe(text);
  expect(cutter.readerOf(null)).toBeUndefined();
  expect(cutter.readerOf({ data: "AAAA" })).toBeUndefined();
});

test.each(lengths)("space around the colon is accepted, in parts of %i bytes", (partLength) => {
  const cutter = open();
  const rest = cut(cutter, `{"routed_experts" :\n "${base64}", "a": "b"}`, partLength);
  expect(rest).toBe('{"routed_experts" :\n "0", "a": "b"}');
});

test("bytes at the end of a part are held only if they may start a name", () => {
  const cutter = open();
  expect(Buffer.concat(cutter.take(Buffer.from('data: {"a":1}\n\n'))).toString()).toBe(
    'data: {"a":1}\n\n',
  );
  expect(Buffer.concat(cutter.take(Buffer.from('{"routed'))).toString()).toBe("{");
  expect(Buffer.concat(cutter.take(Buffer.from('_x":1}'))).toString()).toBe('"routed_x":1}');
});

test("the same member can occur in several events of a stream", () => {
  const cutter = open();
  const event = `data: {"routed_experts":"${base64}"}\n\n`;
  const rest = cut(cutter, event + event, 50);
  expect(rest).toBe('data: {"routed_experts":"0"}\n\ndata: {"routed_experts":"1"}\n\n');
  expect(Buffer.concat(cutter.readerOf("1")!.takeChunks())).toEqual(blob);
});

test.each([
  ["cut off", base64.slice(0, -3)],
  ["with another character", `${base64.slice(0, 100)}*${base64.slice(101)}`],
  ["with padding in the middle", `${base64.slice(0, 99)}=${base64.slice(100)}`],
  ["escaped", `${base64.slice(0, 10)}\\/${base64.slice(12)}`],
])("base64 that is %s is refused", (_, text) => {
  for (const partLength of [1, 40, 10_000]) {
    expect(() => cut(open(), `{"routed_experts":"${text}"}`, partLength)).toThrow(ReplyProblem);
  }
});

test("a text above its limit is refused before it ends", () => {
  expect(() => cut(open(blob.length), `{"routed_experts":"${base64}"}`, 64)).not.toThrow();
  expect(() => cut(open(blob.length - 3), `{"routed_experts":"${base64}`, 64)).toThrow(
    "routed_experts has more than 298 bytes",
  );
});

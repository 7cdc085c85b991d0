import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { faultyFiles } from "../faulty-files.fixture.ts";
import { diskFiles } from "./files.ts";
import { scanLines } from "./line-ranges.ts";
import { LineReader, readPlacedLines, type PlacedLine } from "./placed-lines.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-lines-"));
  file = path.join(dir, "lines.jsonl");
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function collect(start?: number): Promise<readonly PlacedLine[]> {
  const found: PlacedLine[] = [];
  for await (const line of readPlacedLines(diskFiles, file, start)) found.push(line);
  return found;
}

/** Lines that end right before, at and after the ends of the blocks in which a file is read. */
const lengths = [
  0,
  1,
  16 * 1024 - 3,
  0,
  5,
  16 * 1024 - 1,
  16 * 1024,
  16 * 1024 + 1,
  256 * 1024 - 1,
  256 * 1024,
  256 * 1024 + 1,
  700_000,
  0,
  3,
];

test.each([
  ["letters", "a"],
  ["characters that a block's end may cut", "\u{1f600}é"],
])("lines of any length are found in their places: %s", async (_, letters) => {
  const texts = lengths.map((length, at) => {
    const more = Math.max(length - `${at}`.length, 0) / Buffer.byteLength(letters);
    return length === 0 ? "" : `${at}${letters.repeat(Math.ceil(more))}`;
  });
  for (const ending of ["\n", ""]) {
    await writeFile(file, texts.join("\n") + ending);
    const found = await collect();
    let offset = 0;
    const expected = texts.flatMap((text, index) => {
      const length = Buffer.byteLength(text);
      const place = { line: index + 1, offset, length };
      offset += length + 1;
      return text === "" ? [] : [{ text, place }];
    });
    expect(found.map(({ place }) => place)).toEqual(expected.map(({ place }) => place));
    expect(found.every(({ text }, index) => text === expected[index]!.text)).toBe(true);
    const ranges: unknown[] = [];
    await scanLines(diskFiles, file, ({ bytes, start, end }) => {
      ranges.push({ text: bytes.toString("utf8").length, start, end });
    });
    expect(ranges).toEqual(
      expected.map(({ text, place }) => ({
        text: text.length,
        start: place.offset,
        end: place.offset + place.length,
      })),
    );
    await using reader = await LineReader.open(diskFiles, file);
    for (const { place, text } of expected.toReversed()) {
      expect((await reader.read(place)) === text).toBe(true);
    }
    const second = expected[1]!;
    const [again] = await collect(second.place.offset);
    expect(again!.place).toEqual({ ...second.place, line: 1 });
    expect(again!.text === second.text).toBe(true);
  }
});

test("a file is closed however reading ends, and errors of the disk are thrown", async () => {
  await writeFile(file, "one\ntwo\n");
  const calls: string[] = [];
  const files = faultyFiles(({ operation, path: of }) => {
    if (operation === "open" || operation === "close") calls.push(operation);
    return operation === "read" && of.endsWith("bad") ? { type: "fail", code: "EIO" } : undefined;
  });
  for await (const { text } of readPlacedLines(files, file)) {
    expect(text).toBe("one");
    break;
  }
  expect(calls).toEqual(["open", "close"]);
  await writeFile(`${file}.bad`, "one\n");
  await expect(readPlacedLines(files, `${file}.bad`).next()).rejects.toThrow("EIO");
  expect(calls).toEqual(["open", "close", "open", "close"]);
  await expect(readPlacedLines(files, `${file}.none`).next()).rejects.toThrow("ENOENT");
});

test("a disk that gives fewer bytes than asked for loses no line", async () => {
  const text = Array.from({ length: 40 }, (_, line) => `${line}é`.repeat(7)).join("\n");
  await writeFile(file, text);
  const files = faultyFiles(({ operation }) =>
    operation === "read" ? { type: "short", written: 11 } : undefined,
  );
  const found: string[] = [];
  for await (const line of readPlacedLines(files, file)) found.push(line.text);
  expect(found.join("\n")).toBe(text);
});

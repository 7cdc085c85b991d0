import fc from "fast-check";
import { expect, test } from "vitest";
import { IncrementalDecoder } from "./incremental-decoder.ts";
import { modelCodec, modelNames } from "./real-tokenizers.fixture.ts";

type Codec = ConstructorParameters<typeof IncrementalDecoder>[0];

async function decodeInParts(codec: Codec, parts: readonly (readonly number[])[]) {
  const decoder = new IncrementalDecoder(codec);
  const texts: string[] = [];
  for (const part of parts) texts.push(await decoder.push(part));
  texts.push(await decoder.end());
  return texts;
}

function cut(ids: readonly number[], sizes: readonly number[]): number[][] {
  const parts: number[][] = [];
  let start = 0;
  for (let index = 0; start < ids.length; index++) {
    const size = sizes[index % sizes.length]!;
    parts.push(ids.slice(start, start + size));
    start += size;
  }
  return parts;
}

const text =
  "Größe 日本語 \u{1F600}\u{1F468}\u200D\u{1F469}\u200D\u{1F467} кто <|im_end|>\n\uFFFD x";

test.each(modelNames)(
  "%s: complete characters are returned for any split of the ids",
  async (name) => {
    const codec = await modelCodec(name);
    const ids = await codec.encode(text);
    for (const size of [1, 2, 3, ids.length]) {
      const parts = await decodeInParts(codec, cut(ids, [size]));
      expect(parts.join("")).toBe(await codec.decode(ids));
      for (const part of parts) expect(part).not.toMatch(/\p{Surrogate}/u);
    }
  },
);

test.each(modelNames)("%s: the parts of any ids are the text of all", async (name) => {
  const codec = await modelCodec(name);
  // Low ids are single bytes, which mostly are not text.
  const anyId = fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 0, max: codec.vocabularySize - 1 }),
  );
  const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(fc.array(anyId, { maxLength: 60 }), sizes, async (ids, pieceSizes) => {
      const known = ids.filter((id) => codec.tokenOf(id) !== undefined);
      const parts = await decodeInParts(codec, cut(known, pieceSizes));
      expect(parts.join("")).toBe(await codec.decode(known));
    }),
    { numRuns: 60 },
  );
});

test("an id that ends a character returns the character", async () => {
  const codec = await modelCodec("qwen3");
  const ids = await codec.encode("a\u{1F9FF}b c");
  const texts = await decodeInParts(codec, cut(ids, [1]));
  expect(texts.filter((part) => part !== "")).toEqual(["a", "\u{1F9FF}", "b", " c"]);
});

/**
 * A vocabulary of single bytes and letters, as in SentencePiece models. Invalid runs give no text.
 */
const byteFallback: Codec = {
  tokenOf: (id) => (id < 256 ? `<0x${id.toString(16).padStart(2, "0").toUpperCase()}>` : "▁a"),
  async decode(ids) {
    let out = "";
    let run: number[] = [];
    const close = () => {
      const decoded = Buffer.from(run).toString("utf8");
      out += decoded.includes("\uFFFD") ? "\uFFFD".repeat(run.length) : decoded;
      run = [];
    };
    for (const id of ids) {
      if (id < 256) run.push(id);
      else {
        close();
        out += " a";
      }
    }
    close();
    return out.replace(/^ /, "");
  },
};

test("a run of single bytes is decoded as one, and the first space is omitted", async () => {
  const anyId = fc.oneof(fc.constantFrom(0xc3, 0xa9, 0x41, 0xff), fc.constant(300));
  await fc.assert(
    fc.asyncProperty(fc.array(anyId), async (ids) => {
      const parts = await decodeInParts(byteFallback, cut(ids, [1]));
      expect(parts.join("")).toBe(await byteFallback.decode(ids));
    }),
  );
});

test("the work per id is bounded, even if no character is completed", async () => {
  let decodedCount = 0;
  const codec: Codec = {
    tokenOf: () => "x",
    decode: async (ids) => ((decodedCount += ids.length), "\uFFFD".repeat(ids.length)),
  };
  const ids = Array.from({ length: 4_096 }, () => 7);
  const parts = await decodeInParts(codec, cut(ids, [1]));
  expect(parts.join("")).toBe("\uFFFD".repeat(4_096));
  expect(decodedCount).toBeLessThan(5 * 4_096);
});

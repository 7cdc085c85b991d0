import { expect, test } from "vitest";
import { spreadBits } from "../../values/hash-text.ts";
import { createByteLevelText } from "./byte-level.ts";
import {
  libraryTokenizer,
  modelCodec,
  modelFolder,
  modelNames,
} from "../real-tokenizers.fixture.ts";

let drawn = 0;

/** Returns an integer below the limit, the same ones in each run. */
function draw(limit: number): number {
  return spreadBits(++drawn) % limit;
}

test.each(modelNames)("%s: decodes any ids as the library does", async (name) => {
  const codec = await modelCodec(name);
  const library = libraryTokenizer(modelFolder(name));
  const ids = Array.from({ length: codec.vocabularySize + 50 }, (_, id) => id);
  const partial = ids.filter((id) => codec.decodeNow?.([id])?.includes("\ufffd"));
  const added = codec.addedTokens.map(({ id }) => id);
  const kinds = [ids, partial, added];
  const lists = Array.from({ length: 4000 }, () =>
    Array.from({ length: 1 + draw(8) }, () => {
      const kind = kinds[draw(kinds.length)] ?? ids;
      return kind[draw(kind.length)] ?? 0;
    }),
  );
  const texts = await library.decodeBatch(lists, false);
  expect(lists.filter((list, index) => codec.decodeNow?.(list) !== texts[index])).toEqual([]);
  expect(partial.length).toBeGreaterThan(100);
  const single = await library.decodeBatch(
    ids.map((id) => [id]),
    false,
  );
  expect(ids.filter((id) => codec.decodeNow?.([id]) !== single[id])).toEqual([]);
});

const byteLevel = { decoder: { type: "ByteLevel" } };
const spellings = ["a", "Ġ", "Ã", "©", "é漢", "ï»¿"];
const bytes = createByteLevelText(byteLevel, (id) => spellings[id]);

test("bytes of several ids form one character", () => {
  expect(bytes?.decodeNow([0, 1, 2, 3])).toBe("a \u00e9");
  expect(bytes?.decodeNow([2, 0])).toBe("\ufffda");
});

test("a token text that encodes no bytes is itself text", () => {
  expect(bytes?.decodeNow([4])).toBe("é漢");
});

test("a byte order mark stays", () => {
  expect(bytes?.decodeNow([5, 0])).toBe("\ufeffa");
  expect(bytes?.decodeNow([5, 0, 2, 3])).toBe("\ufeffa\u00e9");
});

test("ids without a token text decode to nothing", () => {
  expect(bytes?.decodeNow([0, 99, 0])).toBe("aa");
  expect(bytes?.decodeNow([])).toBe("");
});

test("invalid ids and long lists are left to the library", () => {
  for (const id of [-1, 0.5, NaN, 2 ** 32]) expect(bytes?.decodeNow([0, id])).toBeUndefined();
  expect(bytes?.decodeNow(new Array<number>(8192).fill(0))).toBe("a".repeat(8192));
  expect(bytes?.decodeNow(new Array<number>(8193).fill(0))).toBeUndefined();
});

test("decoders other than the byte-level one are left to the library", () => {
  expect(createByteLevelText({ decoder: { type: "Metaspace" } }, () => "a")).toBeUndefined();
  expect(createByteLevelText({ decoder: null }, () => "a")).toBeUndefined();
  expect(createByteLevelText({}, () => "a")).toBeUndefined();
});

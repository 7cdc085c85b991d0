import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { Encoding, Tokenizer } from "tokenizers";
import { beforeAll, describe, expect, test } from "vitest";
import { spreadBits } from "../internal/hash-text.ts";
import { byteSpellings, createByteLevelText } from "./byte-level.ts";
import { createLearnedPieces } from "./learned-pieces.ts";
import { loadTokenCodec } from "./load-codec.ts";
import { createPieceMerger } from "./merge-piece.ts";
import { readMergeTable } from "./merge-table.ts";
import { OwnMerges } from "./own-merges.ts";
import { createPieceSplitter } from "./piece-splitter.ts";
import { libraryTokenizer, modelFolder, modelNames } from "./real-tokenizers.fixture.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

const shippedModel = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let drawn = 0;

/** A whole number below the limit, the same ones at each run. */
function draw(limit: number): number {
  return spreadBits(++drawn) % limit;
}

const alphabets = [
  "abcdefghijklmnopqrstuvwxyz",
  "aeinorst",
  "AaBbCc",
  "0123456789",
  '{}[]":,.-_/\\|<>=()*#',
  "äöüßéèçñøåł",
  "абвгдежзиклмнопрст",
  "的一是在不了有和人这中大为上个国",
  "あいうえおかきくけこ",
  "가나다라마바사아",
  " \n\t",
];

/** Words that nobody has said, of one alphabet each, and repetitions. */
function makeWord(): string {
  const letters = [...(alphabets[draw(alphabets.length)] ?? "a")];
  const length = 1 + draw(14);
  if (draw(8) === 0) return (letters[draw(letters.length)] ?? "a").repeat(length);
  return Array.from({ length }, () => letters[draw(letters.length)]).join("");
}

const texts = Array.from({ length: 1500 }, () =>
  Array.from({ length: 3 }, makeWord).join(draw(2) === 0 ? " " : ""),
);

describe.each([...modelNames, "storefront-2m"] as const)("%s", (name) => {
  const folder = name === "storefront-2m" ? shippedModel : modelFolder(name);
  let library: Tokenizer;
  let encodings: readonly Encoding[];
  beforeAll(async () => {
    library = libraryTokenizer(folder);
    encodings = await library.encodeBatch([...texts], { addSpecialTokens: false });
  });

  test("any piece is merged as the library does", async () => {
    const file = await readTokenizerFile(folder);
    const split = createPieceSplitter(file.outline);
    const own = new OwnMerges(file, (literal) => library.tokenToId(literal) ?? undefined);
    const merge = await own.fetch();
    const wrong = texts.filter((text, index) => {
      const ids = split?.(text)?.flatMap((piece) => merge?.(piece) ?? [-1]);
      return String(ids) !== String(encodings[index]?.getIds());
    });
    await own.close();
    expect(wrong).toEqual([]);
  });

  test("a codec that keeps hearing new words comes to know them all", async () => {
    const codec = await loadTokenCodec(folder);
    for (const text of texts.slice(0, 1000)) await codec.encode(text);
    await expect
      .poll(() => codec.encodeNow?.("Zzyqvax Kolfendrip"), { timeout: 60_000 })
      .toEqual(
        (await library.encode("Zzyqvax Kolfendrip", null, { addSpecialTokens: false })).getIds(),
      );
    const wrong = texts.filter(
      (text, index) => String(codec.encodeNow?.(text)) !== String(encodings[index]?.getIds()),
    );
    await codec.close?.();
    expect(wrong).toEqual([]);
  });
});

/** A file with all bytes, and merges of a few letters. */
async function mergeTableOf(model: object) {
  const folder = await mkdtemp(path.join(tmpdir(), "merges-"));
  try {
    const file = path.join(folder, "tokenizer.json");
    await writeFile(file, JSON.stringify({ model }));
    const reading = readMergeTable(file);
    const table = await reading.table;
    await reading.end();
    return table;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const ofBytes = Object.fromEntries(byteSpellings.map((spelling, byte) => [spelling, byte]));
const vocab = { ...ofBytes, ab: 256, bc: 257, abc: 258, aa: 259 };
const [a, b] = [0x61, 0x62];

test("of two pairs the one of the lower rank is merged, of equals the leftmost", async () => {
  const table = await mergeTableOf({ vocab, merges: ["b c", ["a", "b"], "a bc", "a a"] });
  const merge = table && createPieceMerger(table);
  expect(merge?.("abc")).toEqual([258]);
  expect(merge?.("abb")).toEqual([256, b]);
  expect(merge?.("aaa")).toEqual([259, a]);
  expect(merge?.("a".repeat(128))).toEqual(new Array(64).fill(259));
  expect(merge?.("a".repeat(129))).toBeUndefined();
});

test("a model that takes pieces whole does so before any merge", async () => {
  const table = await mergeTableOf({ vocab, merges: ["a b"] });
  const merge =
    table && createPieceMerger(table, (spelling) => (spelling === "Ġabc" ? 7 : undefined));
  expect(merge?.(" abc")).toEqual([7]);
  expect(merge?.("ab")).toEqual([256]);
});

test.each([
  ["lacks a byte", { vocab: { a: 0 }, merges: [] }],
  ["merges what it does not hold", { vocab, merges: ["a c"] }],
  ["is no model", null],
])("there is no table of a file that %s", async (_what, model) => {
  expect(await mergeTableOf(model as object)).toBeUndefined();
});

test("rules that give other ids than the library gave are not used", async () => {
  const outline = {
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, use_regex: true },
    decoder: { type: "ByteLevel" },
    model: { type: "BPE" },
    added_tokens: [],
  };
  const spellings = ["a", "b"];
  for (const [wrong, expected] of [
    [1, undefined],
    [0, [0]],
  ] as const) {
    const fetched = Promise.resolve((piece: string) => (piece === "a" ? [wrong] : [0]));
    const learned = createLearnedPieces({
      outline,
      bytes: createByteLevelText(outline, (one) => spellings[one]),
      addedTokens: [],
      fetchMerger: () => fetched,
    });
    for (let count = 0; count < 256; count++) {
      learned?.learn("a", () => ({ ids: [0], words: [0] }));
    }
    await fetched;
    expect(learned?.encodeNow("zz")).toEqual(expected);
  }
});

import { fileURLToPath } from "node:url";
import type { Encoding, Tokenizer } from "tokenizers";
import { beforeAll, describe, expect, test } from "vitest";
import { spreadBits } from "../../values/hash-text.ts";
import { byteCharacters } from "./byte-level.ts";
import { readBytePairModel } from "./byte-pair-model.ts";
import { loadTokenCodec } from "../load-codec.ts";
import { mergeLongPiece } from "./merge-long-piece.ts";
import { createPieceMerger, type MergeRules, type PieceMerger } from "./merge-piece.ts";
import { readMergesPart } from "./merge-table.ts";
import { createPieceCutter, cutText } from "./piece-splitter.ts";
import { libraryTokenizer, modelFolder, modelNames } from "../real-tokenizers.fixture.ts";
import { readTokenizerFile } from "../tokenizer-file.ts";
import { readVocabularyPart } from "./vocabulary-part.ts";

const shippedModel = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));

let drawn = 0;

/** Returns an integer below the limit, the same ones in each run. */
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

/** Random words of one alphabet each, and repetitions. */
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

  test("any piece is merged as by the library", async () => {
    const file = await readTokenizerFile(folder);
    const cutter = createPieceCutter(file.outline)!;
    const { merger } = readBytePairModel(file)!;
    const wrong = texts.filter((text, index) => {
      const pieces = cutText(cutter, text);
      const ids = pieces?.flatMap((piece) => merger.mergeNow(Buffer.from(piece)) ?? [-1]);
      return String(ids) !== String(encodings[index]?.getIds());
    });
    expect(wrong).toEqual([]);
  });

  test("a codec knows the ids of new words at once", async () => {
    const codec = await loadTokenCodec(folder);
    const wrong = texts.filter(
      (text, index) => String(codec.encodeNow?.(text)) !== String(encodings[index]?.getIds()),
    );
    await codec.close?.();
    expect(wrong).toEqual([]);
  });
});

const ofBytes = Object.fromEntries(byteCharacters.map((tokenText, byte) => [tokenText, byte]));
const vocab = { ...ofBytes, ab: 256, bc: 257, abc: 258, aa: 259 };
const [a, b] = [0x61, 0x62];

/** The rules of a model with all bytes, and merges of a few letters. */
function rulesOf(merges: readonly string[]): MergeRules {
  const [ids, list] = [vocab, merges].map((part) => Buffer.from(JSON.stringify(part)));
  const { tokenTexts } = readVocabularyPart(ids!, 0)!;
  const { table } = readMergesPart(list!, 0, tokenTexts!)!;
  return { table, byteIds: Int32Array.from({ length: 256 }, (_, byte) => byte) };
}

function mergerOf(
  merges: readonly string[],
  idOfTokenText?: MergeRules["idOfTokenText"],
): PieceMerger {
  return createPieceMerger({ ...rulesOf(merges), idOfTokenText });
}

test("the pair of the lower rank is merged first, of equals the leftmost", () => {
  const { mergeNow } = mergerOf(["b c", "a b", "a bc", "a a"]);
  expect(mergeNow(Buffer.from("abc"))).toEqual([258]);
  expect(mergeNow(Buffer.from("abb"))).toEqual([256, b]);
  expect(mergeNow(Buffer.from("aaa"))).toEqual([259, a]);
  expect(mergeNow(Buffer.from("a".repeat(128)))).toEqual(new Array(64).fill(259));
});

test("the last merge of a repeated pair counts", () => {
  const { mergeNow } = mergerOf(["a b", "b c", "a bc", "a b"]);
  expect(mergeNow(Buffer.from("abc"))).toEqual([258]);
});

test("a model that ignores merges uses a vocabulary entry first", async () => {
  const long = "x".repeat(200);
  const wholeEntries = new Map([
    ["Ġabc", 7],
    [long, 8],
  ]);
  const { mergeNow, merge } = mergerOf(["a b"], (tokenText) => wholeEntries.get(tokenText));
  expect(mergeNow(Buffer.from(" abc"))).toEqual([7]);
  expect(mergeNow(Buffer.from("ab"))).toEqual([256]);
  expect(await merge(Buffer.from(long))).toEqual([8]);
});

test("a long piece is merged as a short one is, and yields to other tasks", async () => {
  const merges = ["b c", "a b", "a bc", "a a"];
  const rules = rulesOf(merges);
  const merger = mergerOf(merges);
  expect(merger.mergeNow(Buffer.from("a".repeat(129)))).toBeUndefined();
  expect(await merger.merge(Buffer.from("a".repeat(129)))).toEqual([...new Array(64).fill(259), a]);
  expect(await merger.merge(Buffer.from(`${"abc".repeat(5000)}bb`))).toEqual([
    ...new Array(5000).fill(258),
    b,
    b,
  ]);
  for (let count = 0; count < 2000; count++) {
    const letters = Array.from({ length: 1 + draw(40) }, () => a + draw(3));
    expect(await mergeLongPiece(rules, letters)).toEqual(merger.mergeNow(letters));
  }
});

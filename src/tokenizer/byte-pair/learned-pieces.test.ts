import { fileURLToPath } from "node:url";
import type { Tokenizer } from "tokenizers";
import { beforeAll, describe, expect, test } from "vitest";
import { spreadBits } from "../../values/hash-text.ts";
import { createByteLevelText } from "./byte-level.ts";
import type { TokenCodec } from "../codec.ts";
import { createLearnedPieces } from "./learned-pieces.ts";
import { loadTokenCodec } from "../load-codec.ts";
import { isSettled } from "./piece-splitter.ts";
import { libraryTokenizer, modelFolder, modelNames } from "../real-tokenizers.fixture.ts";

const shippedModel = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));

/** Starts, ends and joints at which patterns and added tokens may cut, or not. */
const fragments: readonly string[] = [
  "a",
  "B",
  "the",
  " the",
  "Order",
  "'s",
  "'S",
  "'LL",
  "'ve",
  "'",
  "don't",
  "s'",
  "ß",
  "ı",
  "é",
  "1",
  "12",
  "1234567",
  "0.5",
  "½",
  "²",
  " ",
  "  ",
  "\t",
  "\n",
  "\n\n",
  "\r\n",
  "\r",
  " \n ",
  "\u00a0",
  "\u3000",
  "\u2028",
  "\u2009",
  "_",
  "__",
  "-",
  "--",
  "...",
  '{"',
  '": "',
  '"}}',
  "[1, 2]",
  "</",
  ">",
  "<|im_end|>",
  "<|im_start|>",
  "<|im_",
  "end|>",
  "<tool_call>",
  "</tool_call>",
  "<|eot_id|>",
  "<|",
  "你好，世界",
  "東京タワー",
  "안녕하세요",
  "Привет",
  "ΑΒΓ",
  "αβγ",
  "ё",
  "“q”",
  "—",
  "€",
  "™",
  "→",
  "｛",
  "e\u0301",
  "ſ",
  "'ſ",
  "\u0085",
  "\ufeff",
  "\u200b",
  "😀",
  "\ud800",
  "नमस्ते",
  "\u1100\u1161",
  "Å",
];

let drawn = 0;

/** Returns an integer below the limit, the same ones in each run. */
function draw(limit: number): number {
  return spreadBits(++drawn) % limit;
}

const texts = Array.from({ length: 3000 }, () =>
  Array.from({ length: 1 + draw(10) }, () => fragments[draw(fragments.length)]).join(""),
);

/** Characters of each kind next to all that a pattern could examine. */
function surround(character: string): string {
  return [" ", "a", "1", "'", ".", "\n", ""]
    .map((beside) => `${beside}${character}${beside}${character}${character} ${character}s`)
    .join("\n");
}

describe.each([...modelNames, "storefront-2m"] as const)("%s", (name) => {
  const folder = name === "storefront-2m" ? shippedModel : modelFolder(name);
  let codec: TokenCodec;
  let library: Tokenizer;

  beforeAll(async () => {
    codec = await loadTokenCodec(folder);
    library = libraryTokenizer(folder);
  });

  async function ask(text: string): Promise<number[]> {
    return (await library.encode(text, null, { addSpecialTokens: false })).getIds();
  }

  test("texts of known words get the library's ids at once", async () => {
    const wrong: string[] = [];
    let knownCount = 0;
    for (const text of texts) {
      const expected = await ask(text);
      const known = codec.encodeNow?.(text);
      if (known !== undefined) knownCount += 1;
      const given = known ?? (await codec.encode(text));
      if (String(given) !== String(expected)) wrong.push(text);
    }
    expect(wrong).toEqual([]);
    // Most of the texts contain characters that are left to the library.
    expect(knownCount).toBeGreaterThan(500);
  });

  test("each settled character is cut and encoded as by the library", async () => {
    const wrong: string[] = [];
    const settled = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit)).filter(
      isSettled,
    );
    // All of the alphabets, and a hundredth of the ideographs and syllables.
    const chosen = settled.filter((character, index) => character < "\u3100" || index % 97 === 0);
    for (let from = 0; from < chosen.length; from += 40) {
      const text = chosen
        .slice(from, from + 40)
        .map(surround)
        .join("");
      // The first call learns the text; the second uses the learned pieces.
      const expected = String(await codec.encode(text));
      if (String(codec.encodeNow?.(text)) !== expected) wrong.push(text);
    }
    expect(wrong).toEqual([]);
    expect(codec.encodeNow?.("a")).toEqual(await ask("a"));
  });
});

const outline = {
  pre_tokenizer: {
    type: "Sequence",
    pretokenizers: [
      {
        type: "Split",
        pattern: { Regex: String.raw`\p{L}+` },
        behavior: "Isolated",
        invert: false,
      },
      { type: "ByteLevel", add_prefix_space: false, use_regex: false },
    ],
  },
  decoder: { type: "ByteLevel" },
  model: { type: "BPE" },
  added_tokens: [],
};

const spellings = ["a", "b", "ab", "Ġ"];

function learnedPieces(
  changed: object = {},
  bounds: { readonly recentCount?: number; readonly recentSize?: number } = {},
) {
  const bytes = createByteLevelText(outline, (id) => spellings[id]);
  return createLearnedPieces({
    outline: { ...outline, ...changed },
    bytes,
    addedTokens: [],
    ...bounds,
  });
}

describe("learned pieces", () => {
  test("are the ids of each piece, next to any other piece", () => {
    const learned = learnedPieces();
    learned?.learn("ab a", () => ({ ids: [2, 3, 0], words: [0, 1, 2] }));
    expect(learned?.encodeNow("a ab")).toEqual([0, 3, 2]);
    expect(learned?.encodeNow("a b")).toBeUndefined();
    expect(learned?.encodeNow("")).toEqual([]);
  });

  test("are dropped once the library cuts a text at another place", () => {
    const learned = learnedPieces();
    learned?.learn("ab", () => ({ ids: [2], words: [0] }));
    expect(learned?.encodeNow("ab")).toEqual([2]);
    learned?.learn("a b", () => ({ ids: [0, 3, 1], words: [0, 0, 1] }));
    expect(learned?.encodeNow("ab")).toBeUndefined();
    learned?.learn("ab", () => ({ ids: [2], words: [0] }));
    expect(learned?.encodeNow("ab")).toBeUndefined();
  });

  test("are dropped once ids do not decode to their piece", () => {
    const learned = learnedPieces();
    learned?.learn("a", () => ({ ids: [1], words: [0] }));
    learned?.learn("a", () => ({ ids: [0], words: [0] }));
    expect(learned?.encodeNow("a")).toBeUndefined();
  });

  test("are bounded: pieces that were not used for long are dropped", () => {
    const learned = learnedPieces({}, { recentCount: 2 });
    const teach = (text: string, id: number): void =>
      learned?.learn(text, () => ({ ids: [id], words: [0] }));
    teach("a", 0);
    teach("b", 1);
    teach("ab", 2);
    expect(learned?.encodeNow("a")).toEqual([0]);
    teach(" ", 3);
    expect(["a", "b", "ab", " "].map((text) => learned?.encodeNow(text))).toEqual([
      [0],
      undefined,
      [2],
      [3],
    ]);
  });

  test("are bounded in bytes as well, so that few long pieces are kept", () => {
    // A piece of five letters and five ids takes fifty bytes.
    const learned = learnedPieces({}, { recentSize: 120 });
    const pieces = ["aaaaa", "bbbbb", "ababa"].map((text) => ({
      text,
      ids: [...text].map((letter) => spellings.indexOf(letter)),
    }));
    const knows = (): boolean[] => pieces.map(({ text }) => learned?.encodeNow(text) !== undefined);
    const teach = (place: number): void => {
      const { text, ids } = pieces[place]!;
      learned?.learn(text, () => ({ ids, words: ids.map(() => 0) }));
    };
    teach(0);
    teach(1);
    expect(knows()).toEqual([true, true, false]);
    teach(2);
    teach(1);
    teach(2);
    // The third made the first two older pieces, and the second was moved back.
    learned?.learn("bbbba", () => ({ ids: [1, 1, 1, 1, 0], words: [0, 0, 0, 0, 0] }));
    expect(knows()).toEqual([false, true, true]);
  });

  test.each([
    ["a normaliser", { normalizer: { type: "Lowercase" } }],
    ["chance", { model: { type: "BPE", dropout: 0.1 } }],
    ["another model", { model: { type: "Unigram" } }],
    ["marks on pieces", { model: { type: "BPE", end_of_word_suffix: "</w>" } }],
    ["a space before the text", { pre_tokenizer: { type: "ByteLevel", add_prefix_space: true } }],
    ["another cut", { pre_tokenizer: { type: "Metaspace" } }],
    ["tokens that take the space beside them", { added_tokens: [{ content: "x", rstrip: true }] }],
  ])("are not supported for a tokenizer with %s", (_what, changed) => {
    expect(learnedPieces(changed)).toBeUndefined();
  });
});

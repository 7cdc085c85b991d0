import { describe, expect, test } from "vitest";
import { createByteLevelText } from "./byte-level.ts";
import { createLearnedPieces } from "./learned-pieces.ts";

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
    bounds,
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

  test("are dropped once the library cuts a text elsewhere", () => {
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

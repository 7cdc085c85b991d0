import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createPieceCutter, cutText } from "./piece-splitter.ts";

function outlineOf(patterns: readonly string[], literals: readonly string[]) {
  const splits = patterns.map((pattern) => ({
    type: "Split",
    pattern: { Regex: pattern },
    behavior: "Isolated",
    invert: false,
  }));
  const flags = {
    id: 0,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  };
  return {
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [...splits, { type: "ByteLevel", add_prefix_space: false, use_regex: false }],
    },
    model: { type: "BPE" },
    added_tokens: literals.map((content) => ({ content, ...flags })),
  };
}

/** Returns the pieces as the patterns' matches and the text between them. */
function cutByMatches(text: string, [first, ...others]: readonly string[]): readonly string[] {
  if (first === undefined) return text === "" ? [] : [text];
  const cuts = [0, text.length];
  for (const { 0: match, index } of text.matchAll(new RegExp(first, "gu"))) {
    cuts.push(index, index + match.length);
  }
  const places = [...new Set(cuts)].toSorted((left, right) => left - right);
  return places
    .slice(1)
    .flatMap((end, before) => cutByMatches(text.slice(places[before], end), others));
}

const texts = fc
  .array(fc.constantFrom("a", "B", "é", "1", "23", " ", "  ", "\n", "'s", ".", "<", "<x>", "<x>>"))
  .map((parts) => parts.join(""));

describe("createPieceCutter()", () => {
  test.each([
    ["matches and what lies between them", [String.raw`\p{L}+`], []],
    ["patterns one after the other", [String.raw`\p{N}{1,3}`, String.raw` ?\p{L}+|\s+`], ["<x>"]],
    ["white space by what follows it", [String.raw` ?[^\s]+|\s+(?!\S)|\s+`], ["<x>", "<x>>"]],
    ["added tokens alone", [], ["<x>", "B"]],
  ])("finds %s", (_what, patterns, literals) => {
    const cutter = createPieceCutter(outlineOf(patterns, literals))!;
    const longestFirst = literals.toSorted((left, right) => right.length - left.length);
    fc.assert(
      fc.property(texts, (text) => {
        // The odd parts are the added tokens.
        const parts =
          literals.length === 0 ? [text] : text.split(new RegExp(`(${longestFirst.join("|")})`));
        const expected = parts.flatMap((part, index) =>
          index % 2 === 1 ? [part] : cutByMatches(part, patterns),
        );
        expect(cutText(cutter, text)).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });
});

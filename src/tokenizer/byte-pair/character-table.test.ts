import * as native from "tokenizers";
import { expect, test } from "vitest";
import { byteCharacters } from "./byte-level.ts";
import { characterBits, CharacterTable } from "./character-table.ts";

const table = new CharacterTable([]);

function bitsOf(point: number): number {
  const character = String.fromCodePoint(point);
  return character.length === 1 ? table.bits[point]! : table.bitsOfPair(character, 0);
}

const settled = Array.from({ length: 0x11_0000 }, (_, point) => point).filter(
  (point) => (point < 0xd800 || point > 0xdfff) && (bitsOf(point) & characterBits.unsettled) === 0,
);

/** Returns a tokenizer of bytes that removes matches of a pattern. */
function libraryOf(pattern: string | undefined, normalizer: object | null): native.Tokenizer {
  const bytes = {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: false,
  };
  const split = { type: "Split", pattern: { Regex: pattern }, behavior: "Removed", invert: false };
  const vocab = Object.fromEntries(byteCharacters.map((character, byte) => [character, byte]));
  return native.Tokenizer.fromString(
    JSON.stringify({
      version: "1.0",
      truncation: null,
      padding: null,
      normalizer,
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: pattern === undefined ? [bytes] : [split, bytes],
      },
      post_processor: null,
      decoder: null,
      added_tokens: [],
      model: { type: "BPE", vocab, merges: [] },
    }),
  );
}

async function textBy(library: native.Tokenizer, text: string): Promise<string> {
  const encoding = await library.encode(text, null, { addSpecialTokens: false });
  return Buffer.from(encoding.getIds()).toString();
}

const partLength = 8000;

test("almost all characters are settled", () => {
  expect(settled.length).toBe(286_364);
  expect(
    [..."aé中─✓🤖🫠\u0301\u200d\ue000"].every((one) => settled.includes(one.codePointAt(0)!)),
  ).toBe(true);
});

test.each(["Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "P", "S", "White_Space"])(
  "the library and JavaScript agree on \\p{%s} for each settled character",
  async (property) => {
    const isSpace = property === "White_Space";
    const library = libraryOf(isSpace ? String.raw`\s` : `\\p{${property}}`, null);
    const pattern = new RegExp(`\\p{${property}}`, "gu");
    for (let from = 0; from < settled.length; from += partLength) {
      const text = String.fromCodePoint(...settled.slice(from, from + partLength));
      expect((await textBy(library, text)) === text.replaceAll(pattern, "")).toBe(true);
    }
  },
);

test("the library and JavaScript agree on the normal form of each settled character", async () => {
  const library = libraryOf(undefined, { type: "NFC" });
  const aroundOne = (one: string, isComposing: boolean): string =>
    isComposing
      ? `${one} a${one} a${one}\u0301 a\u0301${one} a\u0316${one} a${one}\u0316${one} \u1100${one}\u11a8 x${one}x\n`
      : `${one}a${one}\u0301\n`;
  for (let from = 0; from < settled.length; from += partLength) {
    const text = settled
      .slice(from, from + partLength)
      .map((point) =>
        aroundOne(String.fromCodePoint(point), (bitsOf(point) & characterBits.composing) !== 0),
      )
      .join("");
    expect((await textBy(library, text)) === text.normalize("NFC")).toBe(true);
  }
});

test("characters that do not compose leave each text in normal form", () => {
  const rest = settled.filter((point) => (bitsOf(point) & characterBits.composing) === 0);
  for (const before of ["", "a", "\u1ea1", "\u1100", "\uac00", "\u0915"]) {
    const text = rest.map((point) => `${before}${String.fromCodePoint(point)}`).join("");
    expect(text.normalize("NFC") === text).toBe(true);
  }
});

test("letters and numbers are marked", () => {
  const wrong = settled.filter(
    (point) =>
      /[\p{L}\p{N}]/u.test(String.fromCodePoint(point)) !==
      ((bitsOf(point) & characterBits.word) !== 0),
  );
  expect(wrong).toEqual([]);
});

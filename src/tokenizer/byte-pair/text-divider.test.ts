import fc from "fast-check";
import * as native from "tokenizers";
import { describe, expect, test } from "vitest";
import { cutsAsLibrary } from "./check-cutter.ts";
import { hardTexts } from "./hard-texts.fixture.ts";
import { knownAlternatives } from "./known-patterns.ts";
import { byteCount, LibraryCut } from "./library-cut.ts";
import { createPieceCutter, cutText } from "./piece-splitter.ts";

const bytes = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: false,
};
const noFlags = { special: true, single_word: false, lstrip: false, rstrip: false };

/** The document of a tokenizer with these patterns. The second token is searched in normalised text. */
function documentOf(patterns: readonly string[], normalizer: object | null = null) {
  const splits = patterns.map((pattern) => ({
    type: "Split",
    pattern: { Regex: pattern },
    behavior: "Isolated",
    invert: false,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    normalizer,
    pre_tokenizer: { type: "Sequence", pretokenizers: [...splits, bytes] },
    post_processor: null,
    decoder: bytes,
    added_tokens: [
      { ...noFlags, id: 256, content: "<|im_end|>", normalized: false },
      { ...noFlags, id: 257, content: "<tool_call>", normalized: normalizer === null },
    ],
    model: { type: "BPE", vocab: {}, merges: [] },
  };
}

const nfc = { type: "NFC" };
const endings = [String.raw`\s*[\r\n]+`, String.raw`\s+(?!\S)`, String.raw`\s+`];
const capitals = String.raw`\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}`;
const smalls = String.raw`\p{Ll}\p{Lm}\p{Lo}\p{M}`;
const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";

/** The patterns of published models. */
const published = {
  "GPT-2": [String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`],
  "Llama 3, GLM": [
    [
      contractions,
      String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`,
      String.raw`\p{N}{1,3}`,
      String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
      ...endings,
    ].join("|"),
  ],
  "Qwen 2 and 3": [
    [
      contractions,
      String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`,
      String.raw`\p{N}`,
      String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
      ...endings,
    ].join("|"),
  ],
  "Qwen 3.5": [
    [
      contractions,
      String.raw`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`,
      String.raw`\p{N}`,
      String.raw` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`,
      ...endings,
    ].join("|"),
  ],
  "gpt-oss": [
    [
      `[^\\r\\n\\p{L}\\p{N}]?[${capitals}]*[${smalls}]+${contractions}?`,
      `[^\\r\\n\\p{L}\\p{N}]?[${capitals}]+[${smalls}]*${contractions}?`,
      String.raw`\p{N}{1,3}`,
      String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
      ...endings,
    ].join("|"),
  ],
  Mistral: [
    [
      `[^\\r\\n\\p{L}\\p{N}]?[${capitals}]*[${smalls}]+`,
      `[^\\r\\n\\p{L}\\p{N}]?[${capitals}]+[${smalls}]*`,
      String.raw`\p{N}`,
      String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
      ...endings,
    ].join("|"),
  ],
  "DeepSeek V3": [
    String.raw`\p{N}{1,3}`,
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
  ],
  "the model that comes with this package": [
    String.raw`[ _]?\p{Ll}+| ?\p{Lu}\p{Ll}*|\p{N}{1,3}|[^\s\p{L}\p{N}]+(?: [^\s\p{L}\p{N}]+)*|\s+|\p{L}+`,
  ],
};

describe.each(
  Object.entries(published).flatMap(([name, patterns]) => [
    [name, patterns, null] as const,
    [`${name} with NFC`, patterns, nfc] as const,
  ]),
)("a text that is cut by the patterns of %s", (_name, patterns, normalizer) => {
  const outline = documentOf(patterns, normalizer);
  const tokens = outline.added_tokens.map(({ content }) => content);
  const cutter = createPieceCutter(outline)!;
  const library = new LibraryCut(native, outline, outline.added_tokens);

  /** Returns the pieces as the library cuts them. */
  async function askLibrary(instance: "full" | "plain", text: string): Promise<string[]> {
    const { symbols, pieces } = await library.cut(instance, text);
    const found: string[] = [];
    for (let from = 0, end = 0; from < symbols.length; from = end) {
      while (end < symbols.length && pieces[end] === pieces[from]) end += 1;
      const token = tokens[(symbols[from] as number) - byteCount];
      found.push(token ?? Buffer.from(symbols.slice(from, end)).toString("latin1"));
    }
    return found;
  }

  /** Returns the pieces as they are cut here. Only unsettled stretches are cut by the library. */
  async function cutHere(text: string, findsTokens: boolean): Promise<string[]> {
    const found: string[] = [];
    for (const { kind, text: stretch } of cutter.divide(text, findsTokens)) {
      if (kind === "token") found.push(stretch);
      if (kind === "unsettled") found.push(...(await askLibrary("plain", stretch)));
      if (kind !== "settled") continue;
      for (let at = 0; at < stretch.length;) {
        const { ends, count } = cutter.cut(stretch, at);
        for (const end of ends.slice(0, count)) {
          found.push(Buffer.from(stretch.slice(at, end)).toString("latin1"));
          at = end;
        }
      }
    }
    return found;
  }

  test("has the library's pieces", async () => {
    const long = fc
      .array(hardTexts, { minLength: 20, maxLength: 40 })
      .map((all) => all.join(" a "));
    const anyTexts = fc.oneof({ weight: 8, arbitrary: hardTexts }, { weight: 1, arbitrary: long });
    await fc.assert(
      fc.asyncProperty(anyTexts, fc.boolean(), async (text, findsTokens) => {
        const expected = await askLibrary(findsTokens ? "full" : "plain", text);
        expect(await cutHere(text, findsTokens)).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });

  test.each(["x \u0958\n\u{1fae9} y", `${"word ".repeat(200)}\u09dc\n\n${"word ".repeat(200)}`])(
    "has the library's pieces if the normal form of a letter ends with a mark: %j",
    async (text) => {
      expect(await cutHere(text, true)).toEqual(await askLibrary("full", text));
    },
  );

  test("is checked against the library's pieces when the tokenizer is loaded", async () => {
    expect(await cutsAsLibrary(cutter, library, tokens)).toBe(true);
    const other = createPieceCutter(documentOf([String.raw`\p{L}+|\s+`], normalizer))!;
    expect(await cutsAsLibrary(other, library, tokens)).toBe(false);
  });
});

test("only stretches with unsettled characters are left to the library", () => {
  const cutter = createPieceCutter(documentOf(published["Llama 3, GLM"], nfc))!;
  const words = "word ".repeat(200);
  const stretches = [...cutter.divide(`${words}x \u{1fae9} ${words}<|im_end|>é✓🤖`, true)];
  const unsettled = stretches.filter(({ kind }) => kind === "unsettled");
  expect(unsettled).toHaveLength(1);
  expect(unsettled[0]?.text).toContain("\u{1fae9}");
  expect(unsettled[0]?.text.length).toBeLessThan(100);
  expect(stretches.at(-1)).toEqual({ kind: "settled", text: "é✓🤖" });
  expect(stretches.map(({ text }) => text).join("")).toBe(
    `${words}x \u{1fae9} ${words}<|im_end|>é✓🤖`,
  );
});

test("a text is not divided if a pattern leaves white space", () => {
  const cutter = createPieceCutter(documentOf([String.raw`\p{L}+`]))!;
  expect([...cutter.divide("word ".repeat(1000), true)]).toHaveLength(1);
});

describe("a boundary between a letter or number and white space", () => {
  const sides = fc.array(
    fc.constantFrom(..."aBé中ʰ1½²'sStrR_-/.!\u0301\u200b\u00a0", "  ", " ", "\n", "\r", "\t"),
    { maxLength: 8 },
  );

  test.each([...knownAlternatives])("is between pieces of %s", (alternative) => {
    const pattern = alternative === String.raw`\s+` ? alternative : String.raw`${alternative}|\s+`;
    const cutter = createPieceCutter(documentOf([pattern]))!;
    fc.assert(
      fc.property(
        sides,
        fc.constantFrom(..."aBé中1½"),
        fc.constantFrom(..." \t\n\r"),
        sides,
        (first, word, space, last) => {
          const [left, right] = [[...first, word].join(""), [space, ...last].join("")];
          expect(cutText(cutter, left + right)).toEqual([
            ...cutText(cutter, left)!,
            ...cutText(cutter, right)!,
          ]);
        },
      ),
      { numRuns: 150 },
    );
  });
});

import { describe, expect, test } from "vitest";
import { isWellKnown } from "./known-patterns.ts";
import { modelFolder, modelNames } from "./real-tokenizers.fixture.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

describe("isWellKnown()", () => {
  test.each(modelNames)("knows the tokenizer of %s", async (name) => {
    expect(isWellKnown(await readTokenizerFile(modelFolder(name)))).toBe(true);
  });

  const split = (pattern: string): Parameters<typeof isWellKnown>[0] =>
    ({
      outline: {
        model: {},
        pre_tokenizer: { type: "Sequence", pretokenizers: [{ pattern: { Regex: pattern } }] },
      },
    }) as unknown as Parameters<typeof isWellKnown>[0];

  test.each([
    // DeepSeek V3
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    // gpt-oss
    String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
    // known parts in another order
    String.raw`\p{N}|\s+`,
  ])("knows %s", (pattern) => {
    expect(isWellKnown(split(pattern))).toBe(true);
  });

  test.each(["(a+)+$", String.raw`\s+|(a+)+$`, String.raw`\s+|`, "(\\s+|\\p{N})+", "[|\\s+|]"])(
    "does not know %s",
    (pattern) => {
      expect(isWellKnown(split(pattern))).toBe(false);
    },
  );

  test("knows no compiled tables and no prefixes of continued words", () => {
    const model = { model: {} };
    const table = { ...model, normalizer: { type: "Precompiled", precompiled_charsmap: "" } };
    const prefixed = { model: { continuing_subword_prefix: "##" } };
    for (const outline of [table, prefixed]) {
      expect(isWellKnown({ ...split(""), outline })).toBe(false);
    }
  });
});

import { describe, expect, test } from "vitest";
import { isKnownPattern } from "./known-patterns.ts";

describe("isKnownPattern()", () => {
  test.each([
    // DeepSeek V3
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    // gpt-oss
    String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
    // Known parts in another order
    String.raw`\p{N}|\s+`,
  ])("knows %s", (pattern) => {
    expect(isKnownPattern(pattern)).toBe(true);
  });

  test.each(["(a+)+$", String.raw`\s+|(a+)+$`, String.raw`\s+|`, "(\\s+|\\p{N})+", "[|\\s+|]"])(
    "does not know %s",
    (pattern) => {
      expect(isKnownPattern(pattern)).toBe(false);
    },
  );
});

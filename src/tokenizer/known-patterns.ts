import type { TokenizerFile } from "./tokenizer-file.ts";

/**
 * Patterns of published tokenizers, on which the native library has been seen to stay well within its
 * limits for any text that is let through.
 */
const knownPatterns: ReadonlySet<string> = new Set([
  // Qwen 2, 2.5 and 3
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  // Llama 3, GLM 4
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  // gpt-oss
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  // DeepSeek V3 and R1
  String.raw`\p{N}{1,3}`,
  "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
  // the model that comes with this package
  String.raw`[ _]?\p{Ll}+| ?\p{Lu}\p{Ll}*|\p{N}{1,3}|[^\s\p{L}\p{N}]+(?: [^\s\p{L}\p{N}]+)*|\s+|\p{L}+`,
]);

/**
 * Whether the file holds nothing that could make the native library run wild: no pattern but known
 * ones, and no compiled table, which it takes on trust.
 */
export function isWellKnown({ outline }: TokenizerFile): boolean {
  const parts = ["normalizer", "pre_tokenizer", "decoder", "post_processor"];
  const { continuing_subword_prefix: prefix } = outline["model"] as Readonly<
    Record<string, unknown>
  >;
  return (
    !parts.some((part) => holdsUnknown(outline[part])) &&
    (prefix === undefined || prefix === null || prefix === "")
  );
}

function holdsUnknown(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, member]) => {
    if (key === "Regex") return !knownPatterns.has(String(member));
    return (key === "type" && member === "Precompiled") || holdsUnknown(member);
  });
}

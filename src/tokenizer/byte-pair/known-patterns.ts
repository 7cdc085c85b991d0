/**
 * The alternatives in the patterns of published tokenizers. Each scans any text in linear time, and
 * so do patterns that combine them, so that the native library stays within its limits. None of them
 * matches white space after a letter or number, so that texts can be divided there
 * (`createTextDivider()`).
 */
export const knownAlternatives: ReadonlySet<string> = new Set([
  // GPT-2 and its successors: contractions, words, numbers, punctuation, white space
  "'s",
  "'t",
  "'re",
  "'ve",
  "'m",
  "'ll",
  "'d",
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
  String.raw`\p{L}+`,
  String.raw` ?\p{L}+`,
  String.raw`[^\r\n\p{L}\p{N}]?\p{L}+`,
  String.raw`\p{N}`,
  String.raw`\p{N}+`,
  String.raw`\p{N}{1,3}`,
  String.raw` ?\p{N}+`,
  String.raw` ?[^\s\p{L}\p{N}]+`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n]*`,
  String.raw` ?[^\s\p{L}\p{N}]+[\r\n/]*`,
  String.raw`\s*[\r\n]+`,
  "\\s*[\r\n]+",
  String.raw`\s+(?!\S)`,
  String.raw`\s+`,
  // Qwen 3.5: marks belong to words
  String.raw`[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+`,
  String.raw` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`,
  // gpt-oss and Mistral: words end where capitals begin
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`,
  // DeepSeek V3 and R1
  "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
  "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+",
  " ?[\\p{P}\\p{S}]+[\r\n]*",
  // the model that comes with this package
  String.raw`[ _]?\p{Ll}+`,
  String.raw` ?\p{Lu}\p{Ll}*`,
  String.raw`[^\s\p{L}\p{N}]+(?: [^\s\p{L}\p{N}]+)*`,
]);

/** True if the pattern consists of known alternatives. None of them matches an empty text. */
export function isKnownPattern(pattern: string): boolean {
  return alternativesOf(pattern).every((alternative) => knownAlternatives.has(alternative));
}

/** Returns the pattern's outermost alternatives. */
function alternativesOf(pattern: string): readonly string[] {
  const alternatives = [""];
  let depth = 0;
  for (const [piece] of pattern.matchAll(/\\[^]|\[(?:\\[^]|[^\]\\])*\]|[^]/gu)) {
    if (piece === "(") depth += 1;
    if (piece === ")") depth -= 1;
    if (piece === "|" && depth === 0) alternatives.push("");
    else alternatives.push(`${alternatives.pop()}${piece}`);
  }
  return alternatives;
}

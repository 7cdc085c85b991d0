/**
 * Recorded vectors that the parsers knowingly do not meet: `id@version`, and why.
 */
export const knownDifferences: Readonly<Record<string, string>> = {};

const vllmOnly = "SGLang has no such parser, and only a few vectors are recorded";

/** vLLM parsers of which vectors are recorded, but which this library does not have, and why. */
export const absentFromVllm: Readonly<Record<string, string>> = {
  ernie45: vllmOnly,
  functiongemma: vllmOnly,
  granite: vllmOnly,
  "granite-20b-fc": vllmOnly,
  granite4: vllmOnly,
  hunyuan_a13b: vllmOnly,
  internlm: vllmOnly,
  jamba: vllmOnly,
  longcat: vllmOnly,
  olmo3: vllmOnly,
  phi4_mini_json: vllmOnly,
  seed_oss: vllmOnly,
  xlam: vllmOnly,
};

/** Recorded vectors that the parsers knowingly do not meet: `id@version`, and the reason. */
export const knownDifferences: Readonly<Record<string, string>> = {
  "v00226@0.24": "Granite 3 behaves as in 0.33, in which a call that is cut off counts",
  "v00227@0.24": "Granite 3 behaves as in 0.33, which drops a marker without a list",
  "v00228@0.24": "Granite 3 behaves as in 0.33, which accepts arguments that are not an object",
  "v00573@0.24": "Seed-OSS behaves as in 0.33, which also finds calls inside the reasoning",
};

/** vLLM parsers with recorded vectors that this library does not have, and the reason. */
export const absentFromVllm: Readonly<Record<string, string>> = {};

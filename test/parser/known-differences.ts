/**
 * Recorded vectors that the parsers knowingly do not meet: `id@version`, and why.
 */
export const knownDifferences: Readonly<Record<string, string>> = {
  "v00573@0.24": "Seed-OSS is read as by 0.33, which finds calls that the reasoning mentions, too",
};

/** vLLM parsers of which vectors are recorded, but which this library does not have, and why. */
export const absentFromVllm: Readonly<Record<string, string>> = {
  granite: "vLLM reads a list of calls that grows, with an engine that no other format needs",
};

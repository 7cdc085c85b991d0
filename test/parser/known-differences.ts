/** Recorded vectors that the parsers knowingly do not meet: `id@version`, and the reason. */
export const knownDifferences: Readonly<Record<string, string>> = {
  "v00226@0.24": "Granite 3 is read as by 0.33, where a call that is cut off counts",
  "v00227@0.24": "Granite 3 is read as by 0.33, which keeps no marker that no list follows",
  "v00228@0.24": "Granite 3 is read as by 0.33, where arguments that are no object count",
  "v00573@0.24": "Seed-OSS is read as by 0.33, which finds calls that the reasoning mentions, too",
};

/** vLLM parsers with recorded vectors that this library does not have, and the reason. */
export const absentFromVllm: Readonly<Record<string, string>> = {};

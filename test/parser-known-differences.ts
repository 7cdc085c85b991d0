/**
 * Recorded vectors that the parsers knowingly do not meet: the vector's id, or `id@version`, and why.
 */
export const knownDifferences: Readonly<Record<string, string>> = {};

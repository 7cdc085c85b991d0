/**
 * What `\s` matches in a Python pattern, as the inside of a JavaScript character class: unlike
 * JavaScript's own, the separators U+001C to U+001F and U+0085, but not U+FEFF.
 */
export const pythonSpaceClass = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

/** Compiles a pattern in which `\s` has Python's meaning. */
export function pythonPattern(source: string, flags: string): RegExp {
  return new RegExp(source.replaceAll(String.raw`\s`, `[${pythonSpaceClass}]`), flags);
}

/** Where Python's `$` matches at the latest: the end, or before a line break that ends the text. */
export function pythonTextEnd(text: string): number {
  return text.endsWith("\n") ? text.length - 1 : text.length;
}

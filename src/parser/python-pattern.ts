/**
 * What `\s` matches in a Python pattern, as the inside of a JavaScript character class: unlike
 * JavaScript's own, the separators U+001C to U+001F and U+0085, but not U+FEFF.
 */
export const pythonSpaceClass = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

/** Compiles a pattern in which `\s` has Python's meaning. */
export function pythonPattern(source: string, flags: string): RegExp {
  return new RegExp(spellSpace(source, pythonSpaceClass), flags);
}

/** Compiles a pattern in which `\s` means Unicode's white space, as in Python's `regex` package. */
export function unicodePattern(source: string, flags: string): RegExp {
  const spaceClass = pythonSpaceClass.replace(String.raw`\x1c-`, "");
  return new RegExp(spellSpace(source, spaceClass), flags);
}

/** Writes `\s` out, inside character classes and outside. */
function spellSpace(source: string, spaceClass: string): string {
  return source.replaceAll(/\[[^\]]*\]|\\s/g, (part) =>
    part === String.raw`\s` ? `[${spaceClass}]` : part.replaceAll(String.raw`\s`, spaceClass),
  );
}

/** Where Python's `$` matches at the latest: the end, or before a line break that ends the text. */
export function pythonTextEnd(text: string): number {
  return text.endsWith("\n") ? text.length - 1 : text.length;
}

import { isPrintable, isPythonSpace } from "../../../python-values/src/index.ts";

/** Digits that are not decimal digits: superscripts, subscripts, circled and similar. */
const digitLike =
  /^[\u00b2\u00b3\u00b9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792]$/u;

function every(text: string, holds: (character: string) => boolean): boolean {
  return text !== "" && Array.from(text).every(holds);
}

const isDecimal = (character: string) => /^\p{Nd}$/u.test(character);
const isDigit = (character: string) => isDecimal(character) || digitLike.test(character);
const isNumeric = (character: string) => /^\p{N}$/u.test(character);
const isAlpha = (character: string) => /^\p{L}$/u.test(character);

/** True if the text has cased characters, and all of them have the wanted case. */
function isCased(text: string, wanted: RegExp, unwanted: RegExp): boolean {
  return wanted.test(text) && !unwanted.test(text);
}

/** Python's `str.islower()`. */
export function isLower(text: string): boolean {
  return isCased(text, /\p{Lowercase}/u, /[\p{Uppercase}\p{Lt}]/u);
}

/** Python's `str.isupper()`. */
export function isUpper(text: string): boolean {
  return isCased(text, /\p{Uppercase}/u, /[\p{Lowercase}\p{Lt}]/u);
}

/** True if capitals occur exactly at the start of words. */
function isTitle(text: string): boolean {
  let cased = false;
  let inWord = false;
  for (const character of text) {
    const upper = /[\p{Uppercase}\p{Lt}]/u.test(character);
    const lower = /\p{Lowercase}/u.test(character);
    if ((upper && inWord) || (lower && !inWord)) return false;
    inWord = upper || lower;
    cased ||= inWord;
  }
  return cased;
}

/** The `is…` methods of `str`, by name. */
export const characterTests: readonly (readonly [string, (text: string) => boolean])[] = [
  ["isalnum", (text) => every(text, (character) => isAlpha(character) || isNumeric(character))],
  ["isalpha", (text) => every(text, isAlpha)],
  // eslint-disable-next-line no-control-regex
  ["isascii", (text) => /^[\0-\x7f]*$/.test(text)],
  ["isdecimal", (text) => every(text, isDecimal)],
  ["isdigit", (text) => every(text, isDigit)],
  ["islower", isLower],
  ["isnumeric", (text) => every(text, isNumeric)],
  [
    "isprintable",
    (text) => Array.from(text).every((character) => isPrintable(character.codePointAt(0) ?? 0)),
  ],
  ["isspace", (text) => every(text, (character) => isPythonSpace(character.charCodeAt(0)))],
  ["istitle", isTitle],
  ["isupper", isUpper],
];

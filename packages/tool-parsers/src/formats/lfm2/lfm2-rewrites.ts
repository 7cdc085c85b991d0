import { isPythonSpace } from "../../../../python-values/src/index.ts";
import { keywords } from "../../shared/python-source/tokens.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

/** The suffix of a name that Python reserves, so that it can name an argument. */
const reservedSuffix = "_pyreservedkw_";

const namePattern = /[\p{L}_][\p{L}\p{N}_]*/uy;
const digitsPattern = /\p{Nd}[\p{Nd}_]*/uy;

/**
 * Rewrites the text at a place outside strings. Returns the replacement and the place to continue
 * at.
 */
type Rewrite = (index: number) => { readonly end: number; readonly text: string } | undefined;

/** Copies a text with its strings unchanged, and rewrites the text outside of them. */
function rewriteOutsideStrings(text: string, rewrite: Rewrite): string {
  const parts: string[] = [];
  let index = 0;
  while (index < text.length) {
    const end = text[index] === "'" || text[index] === '"' ? endOfString(text, index) : undefined;
    const found = end === undefined ? rewrite(index) : { end, text: text.slice(index, end) };
    parts.push(found?.text ?? text[index] ?? "");
    index = found?.end ?? index + 1;
  }
  return parts.join("");
}

/**
 * The end of the string that opens at `index`: the place after the next quote of its kind, or the
 * end of the text.
 */
function endOfString(text: string, index: number): number {
  const quote = text[index];
  let place = index + 1;
  while (place < text.length && text[place] !== quote) place += text[place] === "\\" ? 2 : 1;
  return Math.min(place + 1, text.length);
}

function matchAt(pattern: RegExp, text: string, index: number): string | undefined {
  pattern.lastIndex = index;
  return pattern.exec(text)?.[0];
}

/** Adds a suffix to reserved names that name arguments. */
export function renameReserved(text: string): string {
  let lastSign = "";
  return rewriteOutsideStrings(text, (index) => {
    const name = matchAt(namePattern, text, index);
    if (name === undefined) {
      const character = text[index] ?? "";
      if (!isPythonSpace(character.charCodeAt(0))) lastSign = character;
      return undefined;
    }
    const end = index + name.length;
    const next = skipPythonSpace(text, end);
    const isNamed = text[next] === "=" && text[next + 1] !== "=";
    const before = signBefore(text, index, lastSign);
    const isArgument = keywords.has(name) && isNamed && (before === "(" || before === ",");
    lastSign = name;
    return { end, text: isArgument ? name + reservedSuffix : name };
  });
}

/** Returns the last sign before a position. A string counts as one sign. */
function signBefore(text: string, index: number, lastSign: string): string {
  let place = index - 1;
  while (place >= 0 && isPythonSpace(text.charCodeAt(place))) place -= 1;
  return text[place] === "'" || text[place] === '"' ? "'" : lastSign;
}

/** Returns the original name of an argument that `renameReserved()` renamed; any other name unchanged. */
export function restoreReserved(key: string): string {
  const name = key.endsWith(reservedSuffix) ? key.slice(0, -reservedSuffix.length) : key;
  return keywords.has(name) ? name : key;
}

/** Drops leading zeros that Python does not allow before a number. */
export function dropLeadingZeros(text: string): string {
  return rewriteOutsideStrings(text, (index) => {
    const name = matchAt(namePattern, text, index);
    if (name !== undefined) return { end: index + name.length, text: name };
    const lexeme = matchAt(digitsPattern, text, index);
    if (lexeme === undefined) return undefined;
    const end = index + lexeme.length;
    const digits = lexeme.replaceAll("_", "");
    const isPart = text[index - 1] === "." || /[.eEjJ]/.test(text[end] ?? "");
    const isPadded = digits.startsWith("0") && /[^0]/.test(digits) && !isPart;
    return { end, text: isPadded ? digits.replace(/^0+/, "") : lexeme };
  });
}

const controlEscapes: ReadonlyMap<string, string> = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\0", "\\x00"],
]);

/** Escapes line breaks, tabs and zero characters inside strings. */
export function escapeControls(text: string): string {
  return text.replace(/'(?:[^'\\]|\\[^])*(?:'|\\?$)|"(?:[^"\\]|\\[^])*(?:"|\\?$)/g, (literal) =>
    literal.replace(/\\[^]|[\n\r\t\0]/g, (character) => controlEscapes.get(character) ?? character),
  );
}

/** Splits a list of calls at its outermost commas. If `respectsStrings` is false, brackets inside strings count too. */
export function splitCalls(source: string, respectsStrings: boolean): string[] {
  const text = /^\[[^]*\]$/.test(source) ? source.slice(1, -1) : source;
  const segments: string[] = [];
  let start = 0;
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? "";
    if (respectsStrings && (character === "'" || character === '"')) {
      index = endOfString(text, index) - 1;
    } else if ("([{".includes(character)) depth += 1;
    else if (")]}".includes(character)) depth -= 1;
    else if (character === "," && depth === 0) {
      segments.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...segments, text.slice(start)];
}

import { syntaxError } from "./syntax-error.ts";

/** A string literal and its end. Bytes and formatted strings have no value here. */
type StringLiteral =
  | { readonly kind: "text"; readonly value: string; readonly end: number }
  | { readonly kind: "bytes"; readonly end: number }
  /** A formatted string, with its text if it has no placeholders. */
  | { readonly kind: "formatted"; readonly text?: string; readonly end: number };

const prefixPattern = /([bB]?[rR]?|[rR][bB]|[uU]|[fF][rR]?|[rR][fF])("""|'''|"|')/y;

const shortEscapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\u0007",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** The number of digits of the numeric escapes, by the letter of the escape. */
const hexLengths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/**
 * Reads the Python string literal that starts at `index`; `undefined` if none starts there. Invalid
 * escapes keep their backslash, as in CPython 3.11.
 *
 * @throws PythonError `SyntaxError` if the literal is broken, or names a character (`\N{…}`), which
 *   would need Unicode's names.
 */
export function readStringLiteral(text: string, index: number): StringLiteral | undefined {
  prefixPattern.lastIndex = index;
  const match = prefixPattern.exec(text);
  if (match === null) return undefined;
  const [whole, prefix = "", quote = ""] = match;
  const bodyStart = index + whole.length;
  const bodyEnd = findClosingQuote(text, bodyStart, quote);
  const end = bodyEnd + quote.length;
  const body = text.slice(bodyStart, bodyEnd);
  const flags = prefix.toLowerCase();
  if (flags.includes("f")) return { kind: "formatted", ...readFormatted(body, flags), end };
  if (flags.includes("b")) {
    if (/[^\0-\x7F]/.test(body)) throw syntaxError("bytes can only hold ASCII");
    if (!flags.includes("r")) unescape(body, true);
    return { kind: "bytes", end };
  }
  return { kind: "text", value: flags.includes("r") ? body : unescape(body, false), end };
}

/** The text of a formatted string without placeholders. */
function readFormatted(body: string, flags: string): { readonly text?: string } {
  if (/[{}]/.test(body.replaceAll(/\{\{|\}\}/g, ""))) return {};
  const plain = body.replaceAll("{{", "{").replaceAll("}}", "}");
  return { text: flags.includes("r") ? plain : unescape(plain, false) };
}

function findClosingQuote(text: string, start: number, quote: string): number {
  const stop = new RegExp(quote.length === 3 ? `\\\\|${quote}` : `[\\\\\\n]|${quote}`, "g");
  stop.lastIndex = start;
  for (;;) {
    const match = stop.exec(text);
    if (match === null || match[0] === "\n") throw syntaxError("a string is not closed");
    if (match[0] === quote) return match.index;
    stop.lastIndex = match.index + 2;
  }
}

function unescape(body: string, bytes: boolean): string {
  if (!body.includes("\\")) return body;
  return body.replace(
    /\\(?:([0-7]{1,3})|([xuU])([0-9a-fA-F]*)|([^]))/gu,
    (whole, octal?: string, letter?: string, hex?: string, other?: string) => {
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
      if (letter !== undefined) {
        return bytes && letter !== "x" ? whole : readHexEscape(letter, hex ?? "");
      }
      if (other === "N" && !bytes) throw syntaxError("character names are not supported");
      return Object.hasOwn(shortEscapes, other ?? "") ? (shortEscapes[other ?? ""] ?? "") : whole;
    },
  );
}

function readHexEscape(letter: string, hex: string): string {
  const length = hexLengths[letter] ?? 0;
  const codePoint = Number.parseInt(hex.slice(0, length), 16);
  if (hex.length < length || codePoint > 0x10ffff) throw syntaxError("truncated escape");
  return String.fromCodePoint(codePoint) + hex.slice(length);
}

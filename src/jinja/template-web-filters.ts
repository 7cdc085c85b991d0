import { pythonSpaces } from "../python/white-space.ts";
import { formatMagnitude } from "./template-float-format.ts";
import { iterableOf, isTruthy, toList } from "./template-iterate.ts";
import { convertToFloat } from "./template-number-filters.ts";
import { reprOf, strOf } from "./template-text.ts";
import { valueError } from "./template-error.ts";
import { isDict, runtimeError, textOf, type TemplateValue } from "./template-value.ts";

/** The `urlencode` filter: a text, or pairs and dictionaries as a query. */
export function urlEncode(value: TemplateValue): string {
  const pairs = textOf(value) === undefined ? pairsOf(value) : undefined;
  if (pairs === undefined) return quote(strOf(value));
  return pairs
    .map((pair) => toList(pair).map((part) => quoteForQuery(strOf(part))))
    .map(([key = "", member = ""]) => `${key}=${member}`)
    .join("&");
}

function pairsOf(value: TemplateValue): readonly TemplateValue[] | undefined {
  if (isDict(value)) return Array.from(value, ([key, member]) => [key, member]);
  const items = iterableOf(value);
  return items === undefined ? undefined : Array.from(items);
}

/** Python's `urllib.parse.quote()`: all but letters, digits, `_.-~` and slashes is escaped. */
function quote(text: string): string {
  return quoteAll(text).replaceAll("%2F", "/");
}

function quoteForQuery(text: string): string {
  return quoteAll(text).replaceAll("%20", "+");
}

function quoteAll(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The `filesizeformat` filter. */
export function fileSize(value: TemplateValue, binary: TemplateValue = false): string {
  const bytes = convertToFloat(value, null);
  if (typeof bytes !== "number") {
    throw valueError(`could not convert string to float: ${reprOf(value)}`);
  }
  const base = isTruthy(binary) ? 1024 : 1000;
  if (bytes === 1) return "1 Byte";
  if (bytes < base) return `${Math.trunc(bytes)} Bytes`;
  const letters = [..."kMGTPEZY"];
  const found = letters.findIndex((_letter, index) => bytes < base ** (index + 2));
  const index = found < 0 ? letters.length - 1 : found;
  const letter = letters[index] ?? "";
  const size = (base * bytes) / base ** (index + 2);
  return `${formatMagnitude(size, "f", 1)} ${
    base === 1024 ? `${letter.toUpperCase()}iB` : `${letter}B`
  }`;
}

const spaces = new RegExp(`[${pythonSpaces}]+`, "u");

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
};

/**
 * The `striptags` filter.
 *
 * **Source:** MarkupSafe 3, `Markup.striptags`.
 *
 * @throws TemplateError for a named character beyond the few of XML, which it does not know.
 */
export function stripTags(value: TemplateValue): string {
  const bare = cutOut(cutOut(strOf(value), "<!--", "-->"), "<", ">");
  const text = bare.split(spaces).filter((word) => word !== "");
  return text.join(" ").replace(/&(?:#(\d+)|#[xX]([\da-fA-F]+)|(\w+));/g, unescapeEntity);
}

/** The text without what stands from each `open` to the next `close`. */
function cutOut(text: string, open: string, close: string): string {
  const kept: string[] = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf(open, from);
    const end = start < 0 ? -1 : text.indexOf(close, start);
    if (end < 0) return kept.join("") + text.slice(from);
    kept.push(text.slice(from, start));
    from = end + close.length;
  }
}

function unescapeEntity(whole: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) {
    const character = entities[name];
    if (character === undefined) throw runtimeError(`Cannot strip tags of a text with ${whole}`);
    return character;
  }
  const code = Number.parseInt(decimal ?? hex ?? "", decimal === undefined ? 16 : 10);
  const isCharacter = code >= 0x20 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (!isCharacter || (code >= 0x7f && code < 0xa0)) {
    throw runtimeError(`Cannot strip tags of a text with ${whole}`);
  }
  return String.fromCodePoint(code);
}

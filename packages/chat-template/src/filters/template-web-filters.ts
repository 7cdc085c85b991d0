import { pythonSplit, unescapeHtml } from "../../../python-values/src/index.ts";
import { formatMagnitude } from "../values/template-float-format.ts";
import { iterableOf, isTruthy, toList } from "../values/template-iterate.ts";
import { convertToFloat } from "./template-number-filters.ts";
import { reprOf, strOf } from "../values/template-text.ts";
import { valueError } from "../template-error.ts";
import { isDict, textOf, type TemplateValue } from "../values/template-value.ts";

/** The `urlencode` filter: encodes a text, or pairs and dictionaries as a query. */
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

/** Python's `urllib.parse.quote()`: escapes everything except letters, digits, `_.-~` and slashes. */
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

/**
 * The `striptags` filter.
 *
 * **Source:** MarkupSafe 3.0.4, `Markup.striptags`.
 */
export function stripTags(value: TemplateValue): string {
  const words = pythonSplit(cutTags(strOf(value)));
  return unescapeHtml(words.join(" "));
}

/** The text without its tags and comments, up to the first unclosed one. */
function cutTags(text: string): string {
  const kept: string[] = [];
  let from = 0;
  for (;;) {
    const start = text.indexOf("<", from);
    if (start === -1) break;
    const isComment = text.startsWith("<!--", start);
    const close = isComment ? "-->" : ">";
    const end = text.indexOf(close, isComment ? start + 4 : start);
    if (end === -1) break;
    kept.push(text.slice(from, start));
    from = end + close.length;
  }
  return kept.join("") + text.slice(from);
}

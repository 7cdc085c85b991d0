import { compareCodePoints, pythonSpaces, pythonSplit } from "../../../python-values/src/index.ts";
import { isEscaping } from "../evaluate/autoescape.ts";
import { TemplateError, typeError } from "../template-error.ts";
import { isTruthy, iterate } from "../values/template-iterate.ts";
import { escapeHtml } from "../values/template-markup.ts";
import { reprOf } from "../values/template-text.ts";
import { Markup, textOf, typeName, type TemplateValue } from "../values/template-value.ts";

/** Letters and digits of any script, as Python's `\w`. */
const word = String.raw`\p{L}\p{N}_`;
/** `[a-z]` ignoring case: Python also matches the dotless and the dotted i. */
const letter = "[a-zıİ]";
const i = "[iıİ]";

const webPattern = new RegExp(
  "^(?:" +
    String.raw`(?:https?:\/\/|www\.)(?:(?:[${word}%\-]+\.)+)?(?:${letter}{2,63}|xn--[${word}%]{2,59})|` +
    String.raw`(?:[${word}%\-]{2,63}\.)+(?:com|net|${i}nt|edu|gov|org|${i}nfo|m${i}l)|` +
    String.raw`https?:\/\/(?:\p{Nd}{1,3}(?:\.\p{Nd}{1,3}){3}|` +
    String.raw`\[(?:[\p{Nd}a-f]{0,4}:){2}(?:[\p{Nd}a-f]{0,4}:?){1,6}\])` +
    String.raw`)(?::\p{Nd}{1,5})?(?:[\/?#][^${pythonSpaces}]*)?$`,
  "iu",
);
const mailPattern = new RegExp(
  String.raw`^[^${pythonSpaces}]+@[${word}][${word}.\-]*\.[${word}]+$`,
  "u",
);
const schemePattern = new RegExp(String.raw`^[${word}.+\-]{2,}:\/{0,2}$`, "u");
const separators = new RegExp(`([${pythonSpaces}]+)`, "u");

/** The resolved parameters of the filter. */
interface LinkStyle {
  /** Longest text of a link, in code points. */
  readonly limit: number | undefined;
  /** Attributes of links, each with a space in front. */
  readonly attributes: string;
  readonly schemes: readonly string[];
}

/**
 * The `urlize` filter: turns addresses in a text into links.
 *
 * **Source:** Jinja 3.1.6, `do_urlize()` of `jinja2/filters.py` and `urlize()` of `jinja2/utils.py`.
 */
export function urlize(
  value: TemplateValue,
  limit: TemplateValue = null,
  nofollow: TemplateValue = false,
  target: TemplateValue = null,
  rel: TemplateValue = null,
  schemes: TemplateValue = null,
): string | Markup {
  const style = {
    limit: readLimit(limit),
    attributes: relAttribute(rel, nofollow) + targetAttribute(target),
    schemes: schemes === null ? [] : readSchemes(schemes),
  };
  const words = escapeHtml(value).text.split(separators);
  const text = words
    .map((each, index) => (index % 2 === 0 ? linkWord(each, style) : each))
    .join("");
  return isEscaping() ? new Markup(text) : text;
}

function readLimit(limit: TemplateValue): number | undefined {
  if (limit === null) return undefined;
  if (typeof limit === "bigint" || typeof limit === "boolean") return Number(limit);
  throw typeError(`'>' not supported between instances of 'int' and '${typeName(limit)}'`);
}

function relAttribute(rel: TemplateValue, nofollow: TemplateValue): string {
  const given = isTruthy(rel) ? textOf(rel) : "";
  if (given === undefined) throw typeError(`'${typeName(rel)}' object has no attribute 'split'`);
  const names = [...pythonSplit(given), ...(isTruthy(nofollow) ? ["nofollow"] : []), "noopener"];
  const sorted = [...new Set(names)].toSorted(compareCodePoints);
  return ` rel="${escapeHtml(sorted.join(" ")).text}"`;
}

function targetAttribute(target: TemplateValue): string {
  return isTruthy(target) ? ` target="${escapeHtml(target).text}"` : "";
}

function readSchemes(schemes: TemplateValue): readonly string[] {
  return Array.from(iterate(schemes), (scheme) => {
    const text = textOf(scheme);
    if (text === undefined) throw typeError("expected string or bytes-like object");
    if (schemePattern.test(text)) return text;
    const message = `${reprOf(scheme)} is not a valid URI scheme prefix.`;
    throw new TemplateError("FilterArgumentError", message);
  });
}

/** A word of escaped text; a link if it is an address. */
function linkWord(whole: string, style: LinkStyle): string {
  const head = /^(?:[(<]|&lt;)+/.exec(whole)?.[0] ?? "";
  const rest = whole.slice(head.length);
  const tail = endsAsProse(rest);
  const { middle, left } = balance(rest.slice(0, rest.length - tail.length), tail);
  return head + linkAddress(middle, style) + left;
}

/** The closing brackets, commas and full stops after an address. */
function endsAsProse(text: string): string {
  let start = text.length;
  for (;;) {
    if (start > 0 && ")>.,".includes(text[start - 1] as string)) start -= 1;
    else if (text.endsWith("&gt;", start)) start -= 4;
    else return text.slice(start);
  }
}

/** Moves closing brackets back to an address that has more opening ones. */
function balance(address: string, tail: string): { middle: string; left: string } {
  let middle = address;
  let left = tail;
  for (const [open, close] of [
    ["(", ")"],
    ["<", ">"],
    ["&lt;", "&gt;"],
  ] as const) {
    const opened = countOf(middle, open);
    if (opened <= countOf(middle, close)) continue;
    for (let count = Math.min(opened, countOf(left, close)); count > 0; count--) {
      const end = left.indexOf(close) + close.length;
      middle += left.slice(0, end);
      left = left.slice(end);
    }
  }
  return { middle, left };
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

function linkAddress(address: string, { limit, attributes, schemes }: LinkStyle): string {
  const link = (target: string, shown: string): string =>
    `<a href="${target}"${attributes}>${shown}</a>`;
  if (webPattern.test(address)) {
    const isWhole = address.startsWith("https://") || address.startsWith("http://");
    return link(isWhole ? address : `https://${address}`, shorten(address, limit));
  }
  const mailbox = address.startsWith("mailto:") ? address.slice("mailto:".length) : undefined;
  if (mailbox !== undefined && mailPattern.test(mailbox)) {
    return `<a href="${address}">${mailbox}</a>`;
  }
  const isMail = !/^(?:www\.|@)/.test(address) && !address.includes(":");
  if (isMail && mailPattern.test(address)) return `<a href="mailto:${address}">${address}</a>`;
  let linked = address;
  for (const scheme of schemes) {
    if (linked !== scheme && linked.startsWith(scheme)) linked = link(linked, linked);
  }
  return linked;
}

/** Cuts as Python does: a negative limit removes that many characters at the end. */
function shorten(text: string, limit: number | undefined): string {
  const characters = [...text];
  if (limit === undefined || characters.length <= limit) return text;
  return `${characters.slice(0, limit).join("")}...`;
}

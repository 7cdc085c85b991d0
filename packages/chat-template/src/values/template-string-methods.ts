import { encodeText } from "./template-bytes.ts";
import {
  pythonLower,
  pythonLstrip,
  pythonRstrip,
  pythonStrip,
} from "../../../python-values/src/index.ts";
import { requireCount, requireText } from "../evaluate/template-argument.ts";
import { TemplateError, typeError } from "../template-error.ts";
import { codePointCount, iterate } from "./template-iterate.ts";
import { sliceOf } from "./template-subscript.ts";
import { characterTests } from "./template-string-tests.ts";
import { partition, replaceText, splitLines, splitText } from "./template-string-split.ts";
import type { BoundArguments, Signature } from "../evaluate/template-function.ts";
import { signatureOf } from "../evaluate/template-function.ts";
import type { TemplateValue } from "./template-value.ts";
import { textOf, Tuple, typeName } from "./template-value.ts";

/** A method of `str`. */
export interface StringMethod {
  readonly signature: Signature;
  run(text: string, args: BoundArguments): TemplateValue;
  /** Indexes of arguments that a safe string escapes first. */
  readonly escaped: readonly number[];
}

function text(value: TemplateValue | undefined, rule?: string): string {
  return requireText(value ?? null, rule);
}

function integer(value: TemplateValue | undefined, fallback: number): number {
  return value === undefined ? fallback : requireCount(value);
}

/** A separator; `undefined` if absent or `None`. */
function separatorOf(value: TemplateValue | undefined): string | undefined {
  return value === undefined || value === null ? undefined : text(value, "must be str or None");
}

/** A set of characters to strip; `undefined` if absent or `None`. */
function strippedBy(method: string, value: TemplateValue | undefined): string | undefined {
  const chars = textOf(value);
  if (chars !== undefined || value === undefined || value === null) return chars;
  throw typeError(`${method} arg must be None or str`);
}

/** The part of the text between the `start` and `end` arguments, and its position. */
function window(content: string, start: TemplateValue | undefined, end: TemplateValue | undefined) {
  if (start === undefined && end === undefined) return { part: content, offset: 0 };
  const bounds = { start: start ?? null, stop: end ?? null, step: null };
  const part = sliceOf(content, bounds) as string;
  const length = codePointCount(content);
  const first = integer(start ?? 0n, 0);
  return { part, offset: Math.min(length, Math.max(0, first < 0 ? first + length : first)) };
}

function find(content: string, args: BoundArguments, last: boolean): bigint {
  const [needle, start, end] = args;
  const { part, offset } = window(content, start, end);
  const unit = last ? part.lastIndexOf(text(needle)) : part.indexOf(text(needle));
  return BigInt(unit < 0 ? -1 : offset + codePointCount(part.slice(0, unit)));
}

function index(content: string, args: BoundArguments, last: boolean): bigint {
  const found = find(content, args, last);
  if (found < 0n) throw new TemplateError("ValueError", "substring not found");
  return found;
}

function matchesEdge(content: string, args: BoundArguments, edge: "starts" | "ends"): boolean {
  const [affix, start, end] = args;
  if (typeof affix === "string" && start === undefined && end === undefined) {
    return edge === "starts" ? content.startsWith(affix) : content.endsWith(affix);
  }
  const { part } = window(content, start, end);
  const affixes = affix instanceof Tuple ? affix.items : [affix];
  return affixes.some((candidate) => {
    const wanted = text(candidate, `${edge}with first arg must be str or a tuple of str`);
    return edge === "starts" ? part.startsWith(wanted) : part.endsWith(wanted);
  });
}

function pad(content: string, [width, fill]: BoundArguments, where: "left" | "right" | "both") {
  const room = Math.max(0, Math.min(integer(width, 0), 100_000) - codePointCount(content));
  const character = fill === undefined ? " " : text(fill);
  if (codePointCount(character) !== 1) {
    throw typeError("The fill character must be exactly one character long");
  }
  // Python puts the odd space of a centred text to the left only if the width is odd.
  const before = where === "left" ? room : where === "right" ? 0 : centredLeft(room, width);
  return character.repeat(before) + content + character.repeat(room - before);
}

function centredLeft(room: number, width: TemplateValue | undefined): number {
  return Math.floor(room / 2) + (room & integer(width, 0) & 1);
}

function zeroFill(content: string, width: number): string {
  const sign = /^[+-]/.exec(content)?.[0] ?? "";
  const room = Math.max(0, Math.min(width, 100_000) - codePointCount(content));
  return sign + "0".repeat(room) + content.slice(sign.length);
}

function count(content: string, args: BoundArguments): bigint {
  const [needle, start, end] = args;
  const { part } = window(content, start, end);
  const wanted = text(needle);
  return BigInt(wanted === "" ? codePointCount(part) + 1 : part.split(wanted).length - 1);
}

/** Python's `str.capitalize()`. */
function capitalize(content: string): string {
  const [first = ""] = content;
  return first.toUpperCase() + pythonLower(content.slice(first.length));
}

function titleCase(content: string): string {
  return content.replace(/\p{L}[\p{L}\p{M}]*/gu, capitalize);
}

function swapCase(content: string): string {
  return Array.from(content, (character) =>
    character === character.toUpperCase() ? pythonLower(character) : character.toUpperCase(),
  ).join("");
}

function expandTabs(content: string, size: number): string {
  let column = 0;
  return content.replace(/[^\t\r\n]+|\t|[\r\n]/g, (part) => {
    if (part === "\r" || part === "\n") column = 0;
    if (part !== "\t") {
      if (part !== "\r" && part !== "\n") column += codePointCount(part);
      return part;
    }
    const width = size > 0 ? size - (column % size) : 0;
    column += width;
    return " ".repeat(width);
  });
}

function joinTexts(separator: string, items: TemplateValue): string {
  const parts: string[] = [];
  for (const item of iterate(items)) {
    const part = textOf(item);
    if (part === undefined) {
      const found = `expected str instance, ${typeName(item)} found`;
      throw typeError(`sequence item ${parts.length}: ${found}`);
    }
    parts.push(part);
  }
  return parts.join(separator);
}

function method(
  signature: string,
  run: StringMethod["run"],
  escaped: readonly number[] = [],
): readonly [string, StringMethod] {
  const parsed = signatureOf(signature);
  return [parsed.name, { signature: parsed, run, escaped }];
}

/** The methods of `str` that templates can call, by name, except `format` and `format_map`. */
export const stringMethods: ReadonlyMap<string, StringMethod> = new Map([
  method("capitalize", capitalize),
  method("casefold", (content) => pythonLower(content.replaceAll("ß", "ss").replaceAll("ς", "σ"))),
  method("center width fill?", (content, args) => pad(content, args, "both"), [1]),
  method("count sub start? end?", count),
  method("endswith suffix start? end?", (content, args) => matchesEdge(content, args, "ends")),
  method("expandtabs tabsize?", (content, [size]) => expandTabs(content, integer(size, 8))),
  method("find sub start? end?", (content, args) => find(content, args, false)),
  method("index sub start? end?", (content, args) => index(content, args, false)),
  method("join iterable", (content, [items]) => joinTexts(content, items as TemplateValue)),
  method("ljust width fill?", (content, args) => pad(content, args, "right"), [1]),
  method("lower", pythonLower),
  method("lstrip chars?", (content, [chars]) => pythonLstrip(content, strippedBy("lstrip", chars))),
  method("partition sep", (content, [separator]) => partition(content, text(separator), "first")),
  method("removeprefix prefix", (content, [prefix]) =>
    content.startsWith(text(prefix)) ? content.slice(text(prefix).length) : content,
  ),
  method("removesuffix suffix", (content, [suffix]) =>
    text(suffix) !== "" && content.endsWith(text(suffix))
      ? content.slice(0, -text(suffix).length)
      : content,
  ),
  method(
    "replace old new count?",
    (content, [old, replacement, limit]) =>
      replaceText(
        content,
        text(old, "replace() argument 1 must be str"),
        text(replacement, "replace() argument 2 must be str"),
        integer(limit, -1),
      ),
    [1],
  ),
  method("encode encoding? errors?", (content, [encoding, errors]) =>
    encodeText(content, encoding, errors),
  ),
  method("rfind sub start? end?", (content, args) => find(content, args, true)),
  method("rindex sub start? end?", (content, args) => index(content, args, true)),
  method("rjust width fill?", (content, args) => pad(content, args, "left"), [1]),
  method("rpartition sep", (content, [separator]) => partition(content, text(separator), "last")),
  method("rsplit sep? maxsplit?", (content, [separator, limit]) =>
    splitText(content, separatorOf(separator), integer(limit, -1), "right"),
  ),
  method("rstrip chars?", (content, [chars]) => pythonRstrip(content, strippedBy("rstrip", chars))),
  method("split sep? maxsplit?", (content, [separator, limit]) =>
    splitText(content, separatorOf(separator), integer(limit, -1), "left"),
  ),
  method("splitlines keepends?", (content, [keep]) => splitLines(content, integer(keep, 0) !== 0)),
  method("startswith prefix start? end?", (content, args) => matchesEdge(content, args, "starts")),
  method("strip chars?", (content, [chars]) => pythonStrip(content, strippedBy("strip", chars))),
  method("swapcase", swapCase),
  method("title", titleCase),
  method("upper", (content) => content.toUpperCase()),
  method("zfill width", (content, [width]) => zeroFill(content, integer(width, 0))),
  ...characterTests.map(([name, holds]) => method(name, holds)),
]);

/** Attributes of `str` that Python has and templates do not need. */
export const unsupportedStringMethods: ReadonlySet<string> = new Set([
  "isidentifier",
  "maketrans",
  "translate",
]);

import { pythonLower } from "../python/lower.ts";
import { numberOf } from "./template-compare.ts";
import { TemplateError, typeError } from "./template-error.ts";
import { codePointCount, isTruthy } from "./template-iterate.ts";
import { textLike } from "./template-markup.ts";
import { splitLines } from "./template-string-split.ts";
import { sliceOf } from "./template-subscript.ts";
import { strOf } from "./template-text.ts";
import { undefinedError } from "./template-undefined.ts";
import type { Markup, TemplateValue } from "./template-value.ts";
import { textOf, typeName, Undefined } from "./template-value.ts";

/** The `indent` filter. */
export function indent(
  value: TemplateValue,
  width: TemplateValue = 4n,
  first: TemplateValue = false,
  blank: TemplateValue = false,
): TemplateValue {
  const text = requireText(value);
  const indention = textOf(width) ?? " ".repeat(Number(numberOf(width) ?? 0n));
  // The line break gives an empty text its one empty line.
  const [head = "", ...rest] = splitLines(`${text}\n`, false);
  const indented = rest.map((line) => (line !== "" || isTruthy(blank) ? indention + line : line));
  return textLike(value, (isTruthy(first) ? indention : "") + [head, ...indented].join("\n"));
}

/** The `title` filter: words begin after white space, hyphens and opening brackets. */
export function titleWords(value: string | Markup): TemplateValue {
  const text = strOf(value).replace(/([-\s({[<]+)|[^-\s({[<]+/g, (word: string, gap?: string) => {
    if (gap !== undefined) return gap;
    const [first = ""] = word;
    return first.toUpperCase() + pythonLower(word.slice(first.length));
  });
  return text;
}

/** The `truncate` filter. */
export function truncate(
  value: TemplateValue,
  length: TemplateValue = 255n,
  killWords: TemplateValue = false,
  end: TemplateValue = "...",
  leeway: TemplateValue = 5n,
): TemplateValue {
  const text = requireText(value);
  const ending = requireText(end);
  const limit = Number(numberOf(length) ?? 255n);
  const tolerance = leeway === null ? 5 : Number(numberOf(leeway) ?? 5n);
  const room = limit - codePointCount(ending);
  if (room < 0 || tolerance < 0) {
    throw new TemplateError("AssertionError", `expected length >= ${codePointCount(ending)}`);
  }
  if (codePointCount(text) <= limit + tolerance) return value;
  const cut = sliceOf(text, { start: null, stop: BigInt(room), step: null }) as string;
  const lastSpace = cut.lastIndexOf(" ");
  const kept = isTruthy(killWords) || lastSpace < 0 ? cut : cut.slice(0, lastSpace);
  return kept + ending;
}

/** The number of words, as Python's `\w+` finds them. */
export function wordCount(text: string): number {
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

function requireText(value: TemplateValue): string {
  if (value instanceof Undefined) throw undefinedError(value);
  const text = textOf(value);
  if (text === undefined) throw typeError(`expected str, not ${typeName(value)}`);
  return text;
}

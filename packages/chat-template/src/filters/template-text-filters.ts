import { pythonLower, pythonSpaces } from "../../../python-values/src/index.ts";
import { requireCount, requireText } from "../evaluate/template-argument.ts";
import { TemplateError } from "../template-error.ts";
import { codePointCount, isTruthy, len } from "../values/template-iterate.ts";
import { textLike } from "../values/template-markup.ts";
import { splitLines } from "../values/template-string-split.ts";
import { sliceOf } from "../values/template-subscript.ts";
import { strOf } from "../values/template-text.ts";
import { undefinedError } from "../values/template-undefined.ts";
import type { Markup, TemplateValue } from "../values/template-value.ts";
import { textOf, Undefined } from "../values/template-value.ts";

/** The `indent` filter. */
export function indent(
  value: TemplateValue,
  width: TemplateValue = 4n,
  first: TemplateValue = false,
  blank: TemplateValue = false,
): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const text = requireText(value);
  const indention = textOf(width) ?? " ".repeat(Math.max(0, requireCount(width)));
  // The line break gives an empty text one empty line.
  const [head = "", ...rest] = splitLines(`${text}\n`, false);
  const indented = rest.map((line) => (line !== "" || isTruthy(blank) ? indention + line : line));
  return textLike(value, (isTruthy(first) ? indention : "") + [head, ...indented].join("\n"));
}

const wordStarts = new RegExp(`((?:[${pythonSpaces}]|[-({[<])+)`);

/** The `title` filter: words begin after white space, hyphens and opening brackets. */
export function titleWords(value: string | Markup): TemplateValue {
  return strOf(value)
    .split(wordStarts)
    .map((word) => {
      const [first = ""] = word;
      return first.toUpperCase() + pythonLower(word.slice(first.length));
    })
    .join("");
}

/** The `truncate` filter. */
export function truncate(
  value: TemplateValue,
  length: TemplateValue = 255n,
  killWords: TemplateValue = false,
  end: TemplateValue = "...",
  leeway: TemplateValue = 5n,
): TemplateValue {
  const ending = requireText(end);
  const limit = requireCount(length);
  const tolerance = leeway === null ? 5 : requireCount(leeway);
  const room = limit - codePointCount(ending);
  if (room < 0 || tolerance < 0) {
    throw new TemplateError("AssertionError", `expected length >= ${codePointCount(ending)}`);
  }
  if (len(value) <= limit + tolerance) return value;
  const cut = sliceOf(requireText(value), {
    start: null,
    stop: BigInt(room),
    step: null,
  }) as string;
  const lastSpace = cut.lastIndexOf(" ");
  const kept = isTruthy(killWords) || lastSpace < 0 ? cut : cut.slice(0, lastSpace);
  return kept + ending;
}

/** The number of words, as Python's `\w+` finds them. */
export function wordCount(text: string): number {
  return text.match(/[\p{L}\p{N}_]+/gu)?.length ?? 0;
}

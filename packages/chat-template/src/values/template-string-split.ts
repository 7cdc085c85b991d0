import {
  isPythonSpace,
  pythonLstrip,
  pythonRstrip,
  pythonSplit,
} from "../../../python-values/src/index.ts";
import { valueError } from "../template-error.ts";
import { Tuple } from "./template-value.ts";

/**
 * Python's `str.split()` and, from the right, `str.rsplit()`.
 *
 * @param separator - `undefined` splits at runs of white space.
 * @param limit - The most splits; negative means all.
 * @throws TemplateError `ValueError` for an empty separator.
 */
export function splitText(
  text: string,
  separator: string | undefined,
  limit: number,
  side: "left" | "right",
): string[] {
  if (separator === undefined) {
    if (limit < 0) return pythonSplit(text);
    return side === "left" ? splitWords(text, limit) : splitWordsRight(text, limit);
  }
  if (separator === "") throw valueError("empty separator");
  const parts = text.split(separator);
  const extra = parts.length - 1 - limit;
  if (limit < 0 || extra <= 0) return parts;
  return side === "left"
    ? [...parts.slice(0, limit), parts.slice(limit).join(separator)]
    : [parts.slice(0, extra + 1).join(separator), ...parts.slice(extra + 1)];
}

/** Splits at white space. The rest after the last split keeps its white space at the far end. */
function splitWords(text: string, limit: number): string[] {
  const words: string[] = [];
  let rest = pythonLstrip(text);
  while (rest !== "" && words.length < limit) {
    let end = 0;
    while (end < rest.length && !isPythonSpace(rest.charCodeAt(end))) end += 1;
    words.push(rest.slice(0, end));
    rest = pythonLstrip(rest.slice(end));
  }
  return rest === "" ? words : [...words, rest];
}

function splitWordsRight(text: string, limit: number): string[] {
  const words: string[] = [];
  let rest = pythonRstrip(text);
  while (rest !== "" && words.length < limit) {
    let start = rest.length;
    while (start > 0 && !isPythonSpace(rest.charCodeAt(start - 1))) start -= 1;
    words.unshift(rest.slice(start));
    rest = pythonRstrip(rest.slice(0, start));
  }
  return rest === "" ? words : [rest, ...words];
}

/** Python's `str.partition()` and `str.rpartition()`. */
export function partition(text: string, separator: string, which: "first" | "last"): Tuple {
  if (separator === "") throw valueError("empty separator");
  const index = which === "first" ? text.indexOf(separator) : text.lastIndexOf(separator);
  if (index < 0) return new Tuple(which === "first" ? [text, "", ""] : ["", "", text]);
  return new Tuple([text.slice(0, index), separator, text.slice(index + separator.length)]);
}

const lineBreaks = "\\n-\\r\\x1c-\\x1e\\x85\\u2028\\u2029";
const linePattern = new RegExp(`[^${lineBreaks}]*(\\r\\n|[${lineBreaks}]|$)`, "g");

/** Python's `str.splitlines()`. */
export function splitLines(text: string, keepEnds: boolean): string[] {
  const lines: string[] = [];
  for (const [line, end = ""] of text.matchAll(linePattern)) {
    if (line !== "") lines.push(keepEnds ? line : line.slice(0, line.length - end.length));
  }
  return lines;
}

/**
 * Python's `str.replace()`.
 *
 * @param limit - The most replacements; negative means all.
 */
export function replaceText(text: string, old: string, replacement: string, limit: number): string {
  if (limit < 0 && old !== "") return text.replaceAll(old, () => replacement);
  const parts = old === "" ? ["", ...text, ""] : text.split(old);
  const replaced = limit < 0 ? parts.length - 1 : Math.min(limit, parts.length - 1);
  const head = parts.slice(0, replaced + 1).join(replacement);
  return [head, ...parts.slice(replaced + 1)].join(old);
}

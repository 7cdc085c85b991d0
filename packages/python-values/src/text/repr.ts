import { formatFloat } from "../numbers/float-text.ts";
import { formatInt } from "../numbers/int-text.ts";
import { isPrintable } from "./is-printable.ts";
import { PythonError } from "../python-error.ts";
import type { PyValue } from "../value.ts";
import { isPyList } from "../value.ts";

/** The deepest nesting. CPython refuses deeper values at about this depth, and they would exhaust the stack. */
const maxDepth = 1000;

/**
 * Python's `repr()` of a value.
 *
 * @throws PythonValueError for an integer of more than 4,300 digits.
 * @throws PythonError `RecursionError` for a value that nests beyond a thousand levels.
 */
export function pythonRepr(value: PyValue): string {
  return reprAt(value, 0);
}

/**
 * Python's `repr()` of a string: in single quotes, unless it contains single but no double quotes.
 *
 * **Source:** CPython 3.11, `Objects/unicodeobject.c` (`unicode_repr`).
 */
export function reprString(text: string): string {
  if (!needsEscape.test(text)) return `'${text}'`;
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let body = "";
  for (const character of text) body += escapeCharacter(character, quote);
  return quote + body + quote;
}

const needsEscape = /['\\]|[^ -~]/;

function escapeCharacter(character: string, quote: string): string {
  if (character === quote || character === "\\") return `\\${character}`;
  if (character === "\n") return "\\n";
  if (character === "\r") return "\\r";
  if (character === "\t") return "\\t";
  const codePoint = character.codePointAt(0) as number;
  if (isPrintable(codePoint)) return character;
  const hex = codePoint.toString(16);
  if (codePoint <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return codePoint <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

function reprAt(value: PyValue, depth: number): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return formatInt(value);
  if (typeof value === "number") return formatFloat(value);
  if (typeof value === "string") return reprString(value);
  if (depth > maxDepth) {
    throw new PythonError(
      "RecursionError",
      "maximum recursion depth exceeded while getting the repr of an object",
    );
  }
  if (isPyList(value)) return `[${value.map((item) => reprAt(item, depth + 1)).join(", ")}]`;
  const members = [...value].map(
    ([key, member]) => `${reprString(key)}: ${reprAt(member, depth + 1)}`,
  );
  return `{${members.join(", ")}}`;
}

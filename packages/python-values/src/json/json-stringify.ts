import { compareCodePoints } from "../text/compare-code-points.ts";
import { formatFloat } from "../numbers/float-text.ts";
import { formatInt } from "../numbers/int-text.ts";
import { PythonError } from "../python-error.ts";
import type { PyDict, PyList, PyValue } from "../value.ts";
import { isPyList } from "../value.ts";

/** The arguments of Python's `json.dumps()`. */
export interface PythonDumpsOptions {
  /** True to escape everything beyond printable ASCII. Default true, as in Python. */
  readonly ensureAscii?: boolean;
  /** A number of spaces, or the indent text; absent for one line. */
  readonly indent?: number | string;
  /** Default `", "` (`","` with an indent) and `": "`. */
  readonly separators?: readonly [item: string, key: string];
  /** True to sort keys by code point. Default false. */
  readonly sortKeys?: boolean;
}

/** The deepest nesting. CPython refuses deeper values at about this depth, and they would exhaust the stack. */
const maxDepth = 1000;

/**
 * Writes a value exactly as Python's `json.dumps()` does.
 *
 * **Source:** CPython 3.11, `Lib/json/encoder.py`.
 *
 * @throws PythonValueError for an integer of more than 4,300 digits.
 * @throws PythonError `RecursionError` for a value that nests beyond a thousand levels.
 */
export function stringifyPythonJson(value: PyValue, options: PythonDumpsOptions = {}): string {
  const indent = typeof options.indent === "number" ? " ".repeat(options.indent) : options.indent;
  const [itemSeparator, keySeparator] = options.separators ?? [
    indent === undefined ? ", " : ",",
    ": ",
  ];
  const pattern = options.ensureAscii === false ? escapedAlways : escapedInAscii;
  return write(
    value,
    { itemSeparator, keySeparator, indent, pattern, sortKeys: options.sortKeys ?? false },
    0,
  );
}

interface Format {
  readonly itemSeparator: string;
  readonly keySeparator: string;
  readonly indent: string | undefined;
  readonly pattern: RegExp;
  readonly sortKeys: boolean;
}

const escapedAlways = /["\\]|[^ -\uFFFF]/g;
const escapedInAscii = /["\\]|[^ -~]/g;

const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

function write(value: PyValue, format: Format, depth: number): string {
  if (value === null) return "null";
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "bigint") return formatInt(value);
  if (typeof value === "number") return writeFloat(value);
  if (typeof value === "string") return writeString(value, format);
  if (depth > maxDepth) {
    throw new PythonError(
      "RecursionError",
      "maximum recursion depth exceeded while encoding a JSON object",
    );
  }
  if (isPyList(value)) return writeList(value, format, depth);
  return writeDict(value, format, depth);
}

function writeList(value: PyList, format: Format, depth: number): string {
  const separator = separatorAt(format, depth);
  let members = "";
  // A hole in a list is an error; an array's own methods would skip it.
  for (let index = 0; index < value.length; index++) {
    if (index > 0) members += separator;
    members += write(value[index] as PyValue, format, depth + 1);
  }
  return bracket("[", members, "]", format, depth);
}

function writeDict(dict: PyDict, format: Format, depth: number): string {
  let value: Iterable<readonly [string, PyValue]> = dict;
  if (format.sortKeys) {
    value = [...value].sort(([left], [right]) => compareCodePoints(left, right));
  }
  const separator = separatorAt(format, depth);
  let members = "";
  for (const [key, member] of value) {
    if (members !== "") members += separator;
    members += writeString(key, format) + format.keySeparator;
    members += write(member, format, depth + 1);
  }
  return bracket("{", members, "}", format, depth);
}

/** The text between the members of a list or dictionary. */
function separatorAt({ indent, itemSeparator }: Format, depth: number): string {
  return indent === undefined ? itemSeparator : `${itemSeparator}\n${indent.repeat(depth + 1)}`;
}

function bracket(
  open: string,
  members: string,
  close: string,
  { indent }: Format,
  depth: number,
): string {
  if (indent === undefined || members === "") return open + members + close;
  return `${open}\n${indent.repeat(depth + 1)}${members}\n${indent.repeat(depth)}${close}`;
}

function writeFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  return formatFloat(value);
}

function writeString(value: string, { pattern }: Format): string {
  return isPlainText(value) ? `"${value}"` : `"${value.replace(pattern, escapeUnit)}"`;
}

/**
 * True if no character needs an escape under any pattern. Most texts are such, and replacing without matches is
 * slow.
 */
function isPlainText(value: string): boolean {
  for (let index = 0; index < value.length; index++) {
    const unit = value.charCodeAt(index);
    if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) return false;
  }
  return true;
}

function escapeUnit(unit: string): string {
  return shortEscapes.get(unit) ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

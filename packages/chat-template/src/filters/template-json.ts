import {
  formatFloat,
  formatInt,
  isPyDict,
  type PythonDumpsOptions,
  type PyValue,
  stringifyPythonJson,
} from "../../../python-values/src/index.ts";
import { spend, spendOn, stepsLeft } from "../evaluate/budget.ts";
import { compareForSort } from "../values/template-compare.ts";
import { typeError, valueError } from "../template-error.ts";
import type { BoundArguments } from "../evaluate/template-function.ts";
import { isTruthy, toList } from "../values/template-iterate.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { isDict, isList, textOf, Tuple, typeName } from "../values/template-value.ts";

/**
 * Returns the text of the `tojson` filter as the transformers library defines it: `json.dumps()` without HTML
 * escapes, with non-ASCII text unescaped, and with Python's layout arguments.
 *
 * **Source:** huggingface/transformers, `src/transformers/utils/chat_template_utils.py`.
 *
 * @throws TemplateError `TypeError` for values that JSON cannot represent, such as an undefined value.
 */
export function toJsonText(value: TemplateValue, layout: BoundArguments): string {
  const written = typeof value === "object" && value !== null ? lasting.get(value) : undefined;
  const key = written === undefined ? undefined : keyOf(layout);
  if (written === undefined || key === undefined) return writeJson(value, layout);
  const known = written.get(key);
  if (known !== undefined) {
    spend(known.steps);
    return known.text;
  }
  const before = stepsLeft();
  const text = writeJson(value, layout);
  written.set(key, { text, steps: before - stepsLeft() });
  return text;
}

interface Written {
  readonly text: string;
  /** The steps of writing it, which each use of the text costs again. */
  readonly steps: number;
}

/** Values that many renderings print, with their texts by layout. */
const lasting = new WeakMap<object, Map<string, Written>>();

/** Caches the texts of values that never change: tool definitions. */
export function keepWritten(values: readonly PyValue[] | null): void {
  for (const value of values ?? []) {
    if (isPyDict(value) && !lasting.has(value)) lasting.set(value, new Map());
  }
}

/** A key for the layout; `undefined` for an unusual layout. */
function keyOf(layout: BoundArguments): string | undefined {
  let key = "";
  for (const argument of layout) {
    if (argument === undefined || argument === null) key += "-,";
    else if (typeof argument === "boolean" || typeof argument === "bigint") key += `${argument},`;
    else return undefined;
  }
  return key;
}

function writeJson(
  value: TemplateValue,
  [ensureAscii = false, indent = null, separators = null, sortKeys = false]: BoundArguments,
): string {
  const json = toJsonValue(value, isTruthy(sortKeys));
  if (indent === null && separators === null) {
    return stringifyPythonJson(json, { ensureAscii: isTruthy(ensureAscii) });
  }
  return stringifyPythonJson(json, {
    ensureAscii: isTruthy(ensureAscii),
    ...indentOption(indent),
    ...separatorsOption(separators),
  });
}

function indentOption(indent: TemplateValue): Pick<PythonDumpsOptions, "indent"> {
  if (indent === null) return {};
  const text = textOf(indent);
  if (text !== undefined) return { indent: text };
  if (typeof indent !== "bigint" && typeof indent !== "boolean") {
    throw typeError(`can't multiply sequence by non-int of type '${typeName(indent)}'`);
  }
  return { indent: Math.max(0, Number(indent)) };
}

function separatorsOption(separators: TemplateValue): Pick<PythonDumpsOptions, "separators"> {
  if (separators === null) return {};
  const [item, key, ...rest] = toList(separators).map(textOf);
  if (item === undefined || key === undefined || rest.length > 0) {
    throw valueError("json separators must be two strings");
  }
  return { separators: [item, key] };
}

/** The value as JSON data: tuples as lists, keys as text, safe strings as strings. */
function toJsonValue(value: TemplateValue, sorted: boolean): PyValue {
  // Shared values are counted each time they are written, since the text repeats them.
  spendOn(value);
  if (value === null || typeof value !== "object") return value;
  if (isList(value)) return value.map((item) => toJsonValue(item, sorted));
  if (value instanceof Tuple) return value.items.map((item) => toJsonValue(item, sorted));
  if (!isDict(value)) {
    const text = textOf(value);
    if (text !== undefined) return text;
    throw typeError(`Object of type ${typeName(value)} is not JSON serializable`);
  }
  const entries = sorted
    ? [...value].sort(([left], [right]) => compareForSort(left, right))
    : value;
  const members = new Map<string, PyValue>();
  for (const [key, member] of entries) {
    const name = toJsonKey(key);
    if (members.has(name)) throw valueError(`Cannot write two members named ${name} as JSON`);
    members.set(name, toJsonValue(member, sorted));
  }
  return members;
}

function toJsonKey(key: TemplateValue): string {
  const text = textOf(key);
  if (text !== undefined) return text;
  if (key === null) return "null";
  if (typeof key === "boolean") return String(key);
  if (typeof key === "bigint") return formatInt(key);
  if (typeof key === "number") return formatFloat(key);
  throw typeError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

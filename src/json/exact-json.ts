import { isWellFormed } from "../text/well-formed.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import {
  isPyDict,
  isPyList,
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyValue,
} from "../../packages/python-values/src/value.ts";

/** The exact values of lists and objects that were read from JSON, by the result of `JSON.parse()`. */
const exactValues = new WeakMap<object, PyValue>();

/**
 * Remembers the exact content of a JSON text beside the result of `JSON.parse()`: numbers with their form, integers
 * of any size, and keys in order. `exactOf()` finds it for the value and for all lists and objects in it.
 *
 * @throws PythonError like `parsePythonJson()`.
 */
export function rememberExact(plain: unknown, text: string): void {
  rememberValue(plain, parsePythonJson(text));
}

/** The same for a known exact value. */
export function rememberValue(plain: unknown, exact: PyValue | undefined): void {
  if (typeof plain !== "object" || plain === null || exact === undefined) return;
  exactValues.set(plain, exact);
  if (isPyList(exact)) {
    exact.forEach((item, index) => rememberValue((plain as readonly unknown[])[index], item));
  } else if (isPyDict(exact)) {
    const members = plain as Readonly<Record<string, unknown>>;
    for (const [key, member] of exact) rememberValue(members[key], member);
  }
}

/**
 * Reads JSON as Python writes it, including `NaN`, into plain data with a remembered exact value for `exactOf()`.
 *
 * @throws PythonError like `parsePythonJson()`.
 */
export function parseExactJson(text: string): unknown {
  const exact = parsePythonJson(text);
  const plain = toPlainJson(exact);
  rememberValue(plain, exact);
  return plain;
}

/**
 * Returns the remembered exact value of JSON data, or the value itself as Python data. For an object that was put
 * together, each member is looked up.
 */
export function exactOf(value: unknown): PyValue {
  if (typeof value !== "object" || value === null || value instanceof Map) {
    return toPyValue(value as PlainJson);
  }
  const known = exactValues.get(value);
  if (known !== undefined) return known;
  if (Array.isArray(value)) return value.map(exactOf);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return new Map(members.map(([key, member]) => [key, exactOf(member)]));
}

/** The JSON text of `exactOf()`, without spaces. */
export function writeExactJson(value: unknown): string {
  return writeCompactJson(exactOf(value));
}

/**
 * True if a JSON text may contain a value that JavaScript writes differently: a float with an integral value, a
 * large integer, a key that looks like an integer. May be true because of texts that look alike.
 */
export function mayChange(json: string): boolean {
  return /\d\.\d|\d[eE][+-]?\d|\d{16}|-0|"\d+"\s*:|\\u003/.test(json);
}

/**
 * Returns a text that differs for different exact values. Fast if no exact value of the object or of its members was
 * remembered.
 */
export function exactKey(value: object): string {
  const isExact = [value, ...Object.values(value)].some(
    (part) => typeof part === "object" && part !== null && exactValues.has(part),
  );
  return isExact ? writeExactJson(value) : JSON.stringify(value);
}

/**
 * Returns a Python value as JSON without spaces. Characters are not escaped, except halves of surrogate pairs,
 * which have no UTF-8.
 */
export function writeCompactJson(value: PyValue): string {
  const text = stringifyPythonJson(value, { ensureAscii: false, separators: [",", ":"] });
  return isWellFormed(text) ? text : text.replaceAll(/\p{Surrogate}/gu, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16)}`;
}

/** JSON text that replaces a value in an object that is written. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The value of the text in JavaScript. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** The text of a value that is already written, for `writeJsonWith()`. */
export function writtenText(value: unknown): string | undefined {
  return value instanceof WrittenJson ? value.text : undefined;
}

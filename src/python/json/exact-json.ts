import { isWellFormed } from "../../text/well-formed.ts";
import { parsePythonJson } from "./json-parse.ts";
import { stringifyPythonJson } from "./json-stringify.ts";
import {
  isPyDict,
  isPyList,
  toPlainJson,
  toPyValue,
  type PlainJson,
  type PyValue,
} from "../value.ts";

/** The exact values of lists and objects that were read from JSON, by what `JSON.parse()` made of them. */
const exactValues = new WeakMap<object, PyValue>();

/**
 * Remembers what a JSON text says exactly beside what `JSON.parse()` made of it: numbers with their form,
 * integers of any size, and keys in their order. `exactOf()` finds it for the value and for all lists and
 * objects in it.
 *
 * @throws PythonError as `parsePythonJson()` does.
 */
export function rememberExact(plain: unknown, text: string): void {
  rememberValue(plain, parsePythonJson(text));
}

/** The same where the exact value is known already. */
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
 * Reads JSON as Python writes it, `NaN` included, into plain data that `exactOf()` knows the exact value of.
 *
 * @throws PythonError as `parsePythonJson()` does.
 */
export function parseExactJson(text: string): unknown {
  const exact = parsePythonJson(text);
  const plain = toPlainJson(exact);
  rememberValue(plain, exact);
  return plain;
}

/**
 * The exact value of what was read from JSON, where it was remembered; else what JavaScript has of it. The
 * members of an object that was put together are looked up each.
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
 * Whether a JSON text may hold what JavaScript would write otherwise: a float that is whole, a large integer, a
 * key that looks like one. Texts within it may look so as well.
 */
export function mayChange(json: string): boolean {
  return /\d\.\d|\d[eE][+-]?\d|\d{16}|-0|"\d+"\s*:|\\u003/.test(json);
}

/** A text that tells exact values apart: fast where nothing was remembered. */
export function exactKey(value: object): string {
  return exactValues.has(value) ? writeExactJson(value) : JSON.stringify(value);
}

/**
 * A Python value as JSON without spaces. Characters are written as they are, but for half of a surrogate
 * pair, which has no UTF-8.
 */
export function writeCompactJson(value: PyValue): string {
  const text = stringifyPythonJson(value, { ensureAscii: false, separators: [",", ":"] });
  return isWellFormed(text) ? text : text.replaceAll(/\p{Surrogate}/gu, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16)}`;
}

/** JSON text that takes the place of a value in an object that is written. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** What JavaScript reads in it. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** For `writeJsonWith()`: values that have their text already. */
export function writtenText(value: unknown): string | undefined {
  return value instanceof WrittenJson ? value.text : undefined;
}

import { isWellFormed } from "../internal/well-formed.ts";
import { parsePythonJson } from "./json-parse.ts";
import { stringifyPythonJson } from "./json-stringify.ts";
import { isPyDict, isPyList, toPyValue, type PlainJson, type PyValue } from "./value.ts";

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
  link(plain, parsePythonJson(text));
}

function link(plain: unknown, exact: PyValue | undefined): void {
  if (typeof plain !== "object" || plain === null || exact === undefined) return;
  exactValues.set(plain, exact);
  if (isPyList(exact)) {
    exact.forEach((item, index) => link((plain as readonly unknown[])[index], item));
  } else if (isPyDict(exact)) {
    const members = plain as Readonly<Record<string, unknown>>;
    for (const [key, member] of exact) link(members[key], member);
  }
}

/** The exact value of what was read from JSON, where it was remembered; else what JavaScript has of it. */
export function exactOf(value: unknown): PyValue {
  const isObject = typeof value === "object" && value !== null;
  return (isObject ? exactValues.get(value) : undefined) ?? toPyValue(value as PlainJson);
}

/** The JSON text of `exactOf()`, without spaces. */
export function writeExactJson(value: unknown): string {
  return writeCompactJson(exactOf(value));
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

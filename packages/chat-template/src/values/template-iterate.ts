import { typeError } from "../template-error.ts";
import type { TemplateObject, TemplateValue } from "./template-value.ts";
import {
  isDict,
  isList,
  Markup,
  objectOf,
  textOf,
  Tuple,
  typeName,
  Undefined,
} from "./template-value.ts";

/**
 * A value's items in a `for` loop: a string's code points, a dictionary's keys.
 *
 * @throws TemplateError `TypeError` if the value is not iterable.
 */
export function iterate(value: TemplateValue): Iterable<TemplateValue> {
  const items = iterableOf(value);
  if (items === undefined) throw typeError(`'${typeName(value)}' object is not iterable`);
  return items;
}

/**
 * Returns the values of an iterable, like `iterate()`. Returns `undefined` if the value is not
 * iterable.
 */
export function iterableOf(value: TemplateValue): Iterable<TemplateValue> | undefined {
  if (isList(value) || typeof value === "string") return value;
  if (isDict(value)) return value.keys();
  if (value instanceof Tuple) return value.items;
  if (value instanceof Markup) return value.text;
  if (value instanceof Undefined) return [];
  const object = objectOf(value);
  return object?.iterate === undefined
    ? undefined
    : { [Symbol.iterator]: () => (object as Required<TemplateObject>).iterate() };
}

/** Python's `list(value)`; a list is returned as it is. */
export function toList(value: TemplateValue): readonly TemplateValue[] {
  if (isList(value)) return value;
  return value instanceof Tuple ? value.items : Array.from(iterate(value));
}

/** Python's `len()` in code points, items or members; `undefined` if the value has no length. */
export function lengthOf(value: TemplateValue): number | undefined {
  const text = textOf(value);
  if (text !== undefined) return codePointCount(text);
  if (isList(value)) return value.length;
  if (isDict(value)) return value.size;
  if (value instanceof Tuple) return value.items.length;
  return value instanceof Undefined ? 0 : objectOf(value)?.length?.();
}

/**
 * Python's `len()`.
 *
 * @throws TemplateError `TypeError` if the value has no length.
 */
export function len(value: TemplateValue): bigint {
  const length = lengthOf(value);
  if (length === undefined) throw typeError(`object of type '${typeName(value)}' has no len()`);
  return BigInt(length);
}

/** Python's `bool()`. */
export function isTruthy(value: TemplateValue): boolean {
  switch (typeof value) {
    case "boolean":
      return value;
    case "string":
      return value !== "";
    case "bigint":
      return value !== 0n;
    case "number":
      return value !== 0;
    default:
      break;
  }
  if (value === null) return false;
  const object = objectOf(value);
  if (object === undefined) return lengthOf(value) !== 0;
  return object.truthy === undefined ? object.length?.() !== 0 : object.truthy();
}

const surrogate = /[\uD800-\uDFFF]/;
const pair = /[\uD800-\uDBFF][\uDC00-\uDFFF]/g;

/** True if every code point of the text is one UTF-16 unit. */
export function isOneUnitEach(text: string): boolean {
  return !surrogate.test(text);
}

/** The number of code points; a lone surrogate counts as one, as in Python. */
export function codePointCount(text: string): number {
  return isOneUnitEach(text) ? text.length : text.length - (text.match(pair)?.length ?? 0);
}

/** A one-shot iterator, the result of filters such as `map` and `select`. */
export class Generator implements TemplateObject {
  readonly pythonType: string;
  readonly #items: Iterator<TemplateValue>;

  constructor(items: Iterable<TemplateValue>, pythonType = "generator") {
    this.#items = items[Symbol.iterator]();
    this.pythonType = pythonType;
  }

  /** Without `return()`: a loop that breaks leaves the remaining items for the next reader. */
  iterate(): Iterator<TemplateValue> {
    return { next: () => this.#items.next() };
  }
}

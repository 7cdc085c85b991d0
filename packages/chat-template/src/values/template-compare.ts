import { compareCodePoints } from "../../../python-values/src/index.ts";
import { spend, spendOn } from "../evaluate/budget.ts";
import { typeError } from "../template-error.ts";
import { iterate } from "./template-iterate.ts";
import { undefinedError } from "./template-undefined.ts";
import type { TemplateDict, TemplateValue } from "./template-value.ts";
import {
  isDict,
  isList,
  objectOf,
  runtimeError,
  textOf,
  Tuple,
  typeName,
  Undefined,
} from "./template-value.ts";

/** Python's `==`. */
export function equals(left: TemplateValue, right: TemplateValue): boolean {
  if (left === right) return true;
  spend(1);
  if (typeof left === "string" && typeof right === "string") return false;
  const leftNumber = numberOf(left);
  if (leftNumber !== undefined) {
    const rightNumber = numberOf(right);
    // Loose equality compares a bigint and a number by their mathematical values.
    // eslint-disable-next-line eqeqeq
    return rightNumber !== undefined && leftNumber == rightNumber;
  }
  const leftText = textOf(left);
  if (leftText !== undefined) return leftText === textOf(right);
  if (isList(left)) return isList(right) && equalItems(left, right);
  if (left instanceof Tuple) return right instanceof Tuple && equalItems(left.items, right.items);
  if (isDict(left)) return isDict(right) && equalDicts(left, right);
  return left instanceof Undefined && right instanceof Undefined;
}

function equalItems(left: readonly TemplateValue[], right: readonly TemplateValue[]): boolean {
  return (
    left.length === right.length &&
    left.every((item, index) => equals(item, right[index] as TemplateValue))
  );
}

function equalDicts(left: TemplateDict, right: TemplateDict): boolean {
  if (left.size !== right.size) return false;
  for (const [key, value] of left) {
    const other = dictGet(right, key);
    if (other === undefined || !equals(value, other)) return false;
  }
  return true;
}

/** A number or a boolean as a number; `undefined` for anything else. */
export function numberOf(value: TemplateValue): bigint | number | undefined {
  if (typeof value === "bigint" || typeof value === "number") return value;
  return typeof value === "boolean" ? BigInt(value) : undefined;
}

/**
 * A dictionary's value under a key, or `undefined`.
 *
 * @throws TemplateError `TypeError` for a list or dictionary as key.
 */
export function dictGet(dict: TemplateDict, key: TemplateValue): TemplateValue | undefined {
  if (typeof key === "string") return dict.get(key);
  return dict.get(dictKey(dict, key));
}

/** The dictionary's own key that equals `key`; `key` itself if it has none. */
function dictKey(dict: TemplateDict, key: TemplateValue): TemplateValue {
  assertHashable(key);
  const text = textOf(key);
  if (text !== undefined) return text;
  if (dict.has(key)) return key;
  for (const candidate of dict.keys()) {
    if (typeof candidate !== "string" && equals(candidate, key)) return candidate;
  }
  return key;
}

/**
 * Sets a member; an equal key keeps its place.
 *
 * @throws TemplateError `TypeError` for a list or dictionary as key.
 */
export function dictSet(
  dict: Map<TemplateValue, TemplateValue>,
  key: TemplateValue,
  value: TemplateValue,
): void {
  // A JavaScript map would turn the key into 0.0, which prints differently.
  if (Object.is(key, -0)) throw runtimeError("Cannot use -0.0 as a key in a chat template");
  dict.set(typeof key === "string" ? key : dictKey(dict, key), value);
}

/**
 * Requires a value that can be a key.
 *
 * @throws TemplateError `TypeError` for a list or dictionary, which cannot be keys.
 */
export function assertHashable(key: TemplateValue): void {
  if (isList(key) || isDict(key)) throw typeError(`unhashable type: '${typeName(key)}'`);
  if (!(key instanceof Tuple)) return;
  spendOn(key.items);
  key.items.forEach(assertHashable);
}

/** Comparison operators that order two values. */
export type OrderOperator = "<" | "<=" | ">" | ">=";

/**
 * Python's ordering comparisons.
 *
 * @throws TemplateError `TypeError` for types without an order, `UndefinedError` for undefined.
 */
export function compareOrder(
  left: TemplateValue,
  operator: OrderOperator,
  right: TemplateValue,
): boolean {
  spend(1);
  const leftNumber = numberOf(left);
  const rightNumber = numberOf(right);
  if (leftNumber !== undefined && rightNumber !== undefined) {
    return holds(leftNumber, operator, rightNumber);
  }
  const leftText = textOf(left);
  const rightText = textOf(right);
  if (leftText !== undefined && rightText !== undefined) {
    return holds(compareCodePoints(leftText, rightText), operator, 0);
  }
  if (left instanceof Undefined) throw undefinedError(left);
  if (right instanceof Undefined) throw undefinedError(right);
  if (isList(left) && isList(right)) return compareItems(left, operator, right);
  if (left instanceof Tuple && right instanceof Tuple) {
    return compareItems(left.items, operator, right.items);
  }
  throw typeError(
    `'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`,
  );
}

function holds(left: bigint | number, operator: OrderOperator, right: bigint | number): boolean {
  switch (operator) {
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    case ">=":
      return left >= right;
  }
}

function compareItems(
  left: readonly TemplateValue[],
  operator: OrderOperator,
  right: readonly TemplateValue[],
): boolean {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const a = left[index] as TemplateValue;
    const b = right[index] as TemplateValue;
    if (!equals(a, b)) return compareOrder(a, operator, b);
  }
  return holds(left.length, operator, right.length);
}

/** Compares for sorting as Python sorts: by `<` alone. */
export function compareForSort(left: TemplateValue, right: TemplateValue): number {
  if (compareOrder(left, "<", right)) return -1;
  return compareOrder(right, "<", left) ? 1 : 0;
}

/**
 * Python's `item in container`.
 *
 * @throws TemplateError `TypeError` if the value is not a container.
 */
export function contains(container: TemplateValue, item: TemplateValue): boolean {
  const text = textOf(container);
  if (text !== undefined) {
    const part = textOf(item);
    if (part !== undefined) return text.includes(part);
    throw typeError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (isDict(container)) return dictGet(container, item) !== undefined;
  const isContainer =
    isList(container) ||
    container instanceof Tuple ||
    container instanceof Undefined ||
    objectOf(container)?.iterate !== undefined;
  if (!isContainer) throw typeError(`argument of type '${typeName(container)}' is not iterable`);
  for (const candidate of iterate(container)) if (equals(candidate, item)) return true;
  return false;
}

import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonError,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { regexWordClass } from "../../pattern/read-pattern.ts";

const path = `[${regexWordClass}]+(?:\\.[${regexWordClass}]+)*`;
const placeholder = new RegExp(`\\{(${path})\\}`, "u");
const wholePlaceholder = new RegExp(`^\\{(${path})\\}$`, "u");

/**
 * Fills a transform: each string that is a placeholder, such as `{content.name}`, becomes the value
 * that it names.
 *
 * @throws PythonError if a placeholder names an unknown value.
 */
export function applyTransform(transform: PyValue, scope: PyDict): PyValue {
  if (isPyDict(transform)) {
    return new Map([...transform].map(([key, value]) => [key, applyTransform(value, scope)]));
  }
  if (isPyList(transform)) return transform.map((item) => applyTransform(item, scope));
  if (typeof transform !== "string") return transform;
  const [, named] = wholePlaceholder.exec(transform) ?? [];
  return named === undefined ? transform : lookUp(named, scope);
}

function lookUp(named: string, scope: PyDict): PyValue {
  const [root = "", ...keys] = named.split(".");
  let value = scope.get(root);
  if (value === undefined) throw new PythonError("KeyError", `'{${named}}' is not defined`);
  for (const key of keys) {
    const member: PyValue | undefined = isPyDict(value) ? value.get(key) : undefined;
    if (member === undefined) throw new PythonValueError(`'{${named}}' is missing '${key}'`);
    value = member;
  }
  return value;
}

/** Finds a string of the transform that mixes a placeholder with other text. */
export function findMixedText(transform: PyValue): string | undefined {
  if (isPyDict(transform)) return findFirst([...transform.values()]);
  if (isPyList(transform)) return findFirst(transform);
  if (typeof transform !== "string") return undefined;
  const isMixed = placeholder.test(transform) && !wholePlaceholder.test(transform);
  return isMixed ? transform : undefined;
}

function findFirst(values: readonly PyValue[]): string | undefined {
  for (const value of values) {
    const found = findMixedText(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

import { UsageError } from "../../../errors.ts";
import type { PyDict, PyValue } from "../../../python/value.ts";
import { isPyDict } from "../../../python/value.ts";

/** What is said of a response template that cannot be used. */
export function templateProblem(what: string): UsageError {
  return new UsageError(`Cannot read the response template: ${what}`);
}

/** The value as an object. */
export function requireDict(value: PyValue | undefined, place: string): PyDict {
  if (isPyDict(value)) return value;
  throw templateProblem(`${place} is no object, expected one`);
}

/** Refuses members that are not known. */
export function requireKnownKeys(value: PyDict, known: readonly string[], place: string): void {
  const unknown = [...value.keys()].filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw templateProblem(`${place} has ${unknown.join(", ")}, expected only ${known.join(", ")}`);
}

/** The member as a text, `undefined` where it is absent. */
export function textOf(value: PyDict, key: string, place: string): string | undefined {
  const text = value.get(key);
  if (text === undefined || typeof text === "string") return text;
  throw templateProblem(`${place}.${key} is no text, expected one`);
}

import { UsageError } from "../../../../python-values/src/support/index.ts";
import { isPyDict, type PyDict, type PyValue } from "../../../../python-values/src/index.ts";

/** The error for a response template that cannot be used. */
export function templateProblem(what: string): UsageError {
  return new UsageError(`Cannot read the response template: ${what}`);
}

/**
 * Returns a value that must be an object.
 *
 * @throws UsageError if it is not.
 */
export function requireDict(value: PyValue | undefined, place: string): PyDict {
  if (isPyDict(value)) return value;
  throw templateProblem(`${place} is not an object`);
}

/**
 * Checks that an object has only known members.
 *
 * @throws UsageError naming an unknown member.
 */
export function requireKnownKeys(value: PyDict, known: readonly string[], place: string): void {
  const unknown = [...value.keys()].filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  throw templateProblem(`${place} has ${unknown.join(", ")}, expected only ${known.join(", ")}`);
}

/**
 * The member as a string; `undefined` if it is absent.
 *
 * @throws UsageError for any other value.
 */
export function textOf(value: PyDict, key: string, place: string): string | undefined {
  const text = value.get(key);
  if (text === undefined || typeof text === "string") return text;
  throw templateProblem(`${place}.${key} is not a string`);
}

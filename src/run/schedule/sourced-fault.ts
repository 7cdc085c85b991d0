import { describe } from "../../episode/check/foreign-value.ts";

/**
 * Returns the reason for which a source's answer cannot be played; `undefined` if it can. A later start needs the
 * checked members to read the row.
 */
export function sourcedFault(sourced: unknown): string | undefined {
  const { task, groupId } = (sourced ?? {}) as Readonly<Record<string, unknown>>;
  const { id, split, index } = (task ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof id !== "string") return "it gave none, expected { task }, with an id";
  const wrong = (name: string, value: unknown, expected: string): string =>
    `the ${name} of "${id}" is ${describe(value)}, expected ${expected}`;
  if (id === "") return wrong("id", id, "a text that is not empty");
  if (!isName(split)) return wrong("split", split, "a text that is not empty");
  if (!Number.isSafeInteger(index) || (index as number) < 0) {
    return wrong("index", index, "a whole number of at least 0, its place within its split");
  }
  if (groupId === undefined || isName(groupId)) return undefined;
  return wrong("groupId", groupId, "a text that is not empty");
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

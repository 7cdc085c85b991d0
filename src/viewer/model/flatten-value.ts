import { isObject } from "../../values/is-object.ts";

/** A value within a larger one, as a table shows it. */
export interface FlatValue {
  /** The member names and list indexes that lead to the value, such as `judge`, `tags`, `0`. */
  readonly path: readonly string[];
  /** The value as text: a text unchanged, another value as JSON. */
  readonly text: string;
}

/** The most values that are listed. */
const maxValues = 500;

/** The maximum depth. Values below more names are left out. */
const maxDepth = 30;

/** The maximum length of the JSON of a list of simple values that gets one row. */
const maxListLength = 160;

/** Lists the values within a value. `rest` is the number of values that are left out. */
export function flattenValue(value: unknown): {
  readonly values: readonly FlatValue[];
  readonly rest: number;
} {
  const values: FlatValue[] = [];
  let rest = 0;
  const add = (inner: unknown, path: readonly string[]): void => {
    const members = membersOf(inner);
    if (inner === undefined) return;
    if (members !== undefined && path.length === maxDepth) rest++;
    else if (members !== undefined) {
      for (const [name, member] of members) add(member, [...path, name]);
    } else if (values.length < maxValues) values.push({ path, text: textOf(inner) });
    else rest++;
  };
  add(value, []);
  return { values, rest };
}

/** Returns the members of a value that gets a row for each member; `undefined` for a value that gets one row. */
function membersOf(value: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (Array.isArray(value)) {
    const isBrief = value.every((item) => typeof item !== "object" || item === null);
    if (isBrief && JSON.stringify(value).length <= maxListLength) return undefined;
    return value.map((item, index) => [String(index), item] as const);
  }
  if (!isObject(value)) return undefined;
  const members = Object.entries(value);
  return members.length === 0 ? undefined : members;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

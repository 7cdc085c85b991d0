import type { PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";

/** True if any string of the value, dictionary keys included, passes the test. */
export function someString(value: PyValue, test: (text: string) => boolean): boolean {
  if (typeof value === "string") return test(value);
  if (isPyList(value)) return value.some((item) => someString(item, test));
  if (!isPyDict(value)) return false;
  let isFound = false;
  // Called for every turn's messages: an iterator would make a list for each member.
  value.forEach((member, key) => {
    isFound ||= test(key) || someString(member, test);
  });
  return isFound;
}

/** Returns the value with every string, dictionary keys included, replaced. */
export function mapStrings(value: PyValue, replace: (text: string) => string): PyValue {
  if (typeof value === "string") return replace(value);
  if (isPyList(value)) return value.map((item) => mapStrings(item, replace));
  if (!isPyDict(value)) return value;
  return new Map([...value].map(([key, item]) => [replace(key), mapStrings(item, replace)]));
}

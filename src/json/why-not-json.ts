import { maxValueDepth, nestsDeeper } from "./nesting.ts";

/**
 * Returns the reason why a value cannot be written as JSON, as the writer's error states it; `undefined` if it can.
 * Long texts and numbers cost nothing.
 */
export function whyNotJson(value: unknown): string | undefined {
  const isWritten = typeof value === "bigint" || (typeof value === "object" && value !== null);
  if (!isWritten) return undefined;
  try {
    if (isSmallData(value)) return undefined;
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined || !nestsDeeper(text, maxValueDepth)) return undefined;
    return `it nests deeper than ${maxValueDepth} lists and objects`;
  } catch (error) {
    return error instanceof Error ? error.message.split("\n")[0]! : "it throws";
  }
}

/** The amount of a value that is inspected before trying to write it: characters, plus one for each value. */
const smallSize = 20_000;
const smallDepth = 8;

/** The amount left. Shared by all calls, since the inspection is synchronous. */
let leftSize = 0;

/**
 * True if a value is small plain data: lists and objects of texts, numbers and the like, a few levels deep. Nearly
 * all values are, all such values can be written, and the check takes a fraction of writing them. False says
 * nothing about a value.
 */
export function isSmallData(value: unknown): boolean {
  leftSize = smallSize;
  try {
    return isData(value, smallDepth);
  } catch {
    // If inspecting the value throws, the writer reports the error.
    return false;
  }
}

function isData(value: unknown, depth: number): boolean {
  if (typeof value === "string") return (leftSize -= value.length + 1) >= 0;
  if (typeof value !== "object") return typeof value !== "bigint";
  if (value === null) return true;
  if (depth === 0 || --leftSize < 0) return false;
  if (Array.isArray(value)) {
    leftSize -= value.length;
    if (leftSize < 0 || "toJSON" in value) return false;
    for (let index = 0; index < value.length; index++) {
      if (!isData(value[index], depth - 1)) return false;
    }
    return true;
  }
  const kind: unknown = Object.getPrototypeOf(value);
  if ((kind !== Object.prototype && kind !== null) || "toJSON" in value) return false;
  for (const name in value) {
    leftSize -= name.length + 1;
    if (leftSize < 0) return false;
    if (!isData((value as Readonly<Record<string, unknown>>)[name], depth - 1)) return false;
  }
  return true;
}

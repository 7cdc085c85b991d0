import { maxValueDepth, nestsDeeper } from "./nesting.ts";

/**
 * Why a value cannot be written as JSON, in the words of who would write it; nothing where it can. Texts
 * and numbers cost nothing, whatever their length.
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

/** How much is looked at before writing it is asked: characters, and one more for each value. */
const smallSize = 20_000;
const smallDepth = 8;

/** What is left of it. One for the thread: looking at a value waits for nobody. */
let leftSize = 0;

/**
 * Whether a value is little and plain, as nearly all are: lists and objects of texts, numbers and the like, a few
 * levels deep. All such can be written, and seeing that takes a fraction of writing them. That another is
 * none says nothing of it.
 */
export function isSmallData(value: unknown): boolean {
  leftSize = smallSize;
  try {
    return isData(value, smallDepth);
  } catch {
    // What throws as it is looked at is told by whoever writes it.
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

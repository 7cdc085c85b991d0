import { maxValueDepth, nestsDeeper } from "./nesting.ts";

/**
 * Why a value cannot be written as JSON, in the words of who would write it; nothing where it can. Texts
 * and numbers cost nothing, whatever their length.
 */
export function whyNotJson(value: unknown): string | undefined {
  const isWritten = typeof value === "bigint" || (typeof value === "object" && value !== null);
  if (!isWritten) return undefined;
  try {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined || !nestsDeeper(text, maxValueDepth)) return undefined;
    return `it nests deeper than ${maxValueDepth} lists and objects`;
  } catch (error) {
    return error instanceof Error ? error.message.split("\n")[0]! : "it throws";
  }
}

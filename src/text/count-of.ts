import { formatCount } from "./format-count.ts";

/** Formats a number with its noun for people, such as `1 row` or `2,000 rows`. The plural of the noun adds an s. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

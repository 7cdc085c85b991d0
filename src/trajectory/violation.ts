import { whyNotJson } from "../json/why-not-json.ts";

/** One broken invariant. JSON-able. */
export interface Violation {
  /** The rule's name, stable for scripts. */
  readonly rule: string;
  readonly detail: string;
}

/** A row as read from a file: nothing about it is known yet. */
export type RawRow = Readonly<Record<string, unknown>>;

/** Whether a value is an object with members. */
export function isRow(value: unknown): value is RawRow {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a whole number of at least 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** What stands where a name is expected: the text, or whatever else is there as its JSON. */
export function nameOf(value: unknown): string {
  return typeof value === "string" ? value : quote(value);
}

/** A value in a message: its JSON, cut where it is long; of what cannot be written, why. */
export function quote(value: unknown): string {
  const why = whyNotJson(value);
  if (why !== undefined) return `a value that cannot be shown (${why})`;
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

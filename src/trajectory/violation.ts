import { whyNotJson } from "../json/why-not-json.ts";

export { isCount } from "../values/is-count.ts";

/** One broken invariant. JSON-able. */
export interface Violation {
  /** The name of the rule. Scripts may rely on it. */
  readonly rule: string;
  readonly detail: string;
}

/** A row as read from a file, unchecked. */
export type RawRow = Readonly<Record<string, unknown>>;

/** Returns a name for a message: the text, or the JSON of another value. */
export function nameOf(value: unknown): string {
  return typeof value === "string" ? value : quote(value);
}

/** Returns a value's JSON for a message, shortened if it is long. For a value without JSON, returns the reason. */
export function quote(value: unknown): string {
  const why = whyNotJson(value);
  if (why !== undefined) return `a value that cannot be shown (${why})`;
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

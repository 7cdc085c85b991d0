import { safeCutIndex } from "./redactor.ts";

/**
 * Shortens a text for a message. The cut, marked by `…`, is neither inside a surrogate pair nor inside a secret of this
 * process.
 */
export function shorten(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, safeCutIndex(text, length))}…`;
}

/** Returns the JSON of a value for a message, shortened. A value without JSON, such as `undefined`, is "nothing". */
export function shortJson(value: unknown, length: number): string {
  return shorten(JSON.stringify(value) ?? "nothing", length);
}

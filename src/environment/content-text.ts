import { isMostlyHoles } from "./state/sparse-list.ts";

/** A typed array or list of numbers, one number per index. */
export type Numbers = ArrayLike<number | bigint>;

export function isNumbers(value: unknown): value is Numbers {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/**
 * Returns a text (not JSON) that identifies an object's content, for comparisons. Returns
 * `undefined` if the object's properties show its content. An opaque object, such as an instance of
 * a class with private fields, is identified by `idOf`.
 */
export function contentText(value: unknown, idOf: (value: unknown) => number): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : String(value);
  if (isInvalidDate(value)) return "date(invalid)";
  if (isNumbers(value)) return `numbers(${Array.from(value).join(",")})`;
  const bytes = bytesOf(value);
  if (bytes !== undefined) return `bytes(${bytes.join(",")})`;
  const builtin = builtinText(value);
  if (builtin !== undefined) return `${classOf(value)}(${JSON.stringify(builtin)})`;
  const isHidden = hidesContent(value) || typeof value === "function" || typeof value === "symbol";
  return isHidden ? `thing(${idOf(value)})` : undefined;
}

/**
 * Returns a JSON text that describes an object's content to people, if its properties do not show
 * it; `undefined` otherwise. `contentText()` returns the text for comparisons.
 */
export function shownContent(value: unknown): string | undefined {
  const bytes = isNumbers(value) ? value : bytesOf(value);
  const builtin = builtinText(value);
  if (bytes !== undefined) return JSON.stringify(`(${classOf(value)} of ${describe(bytes)})`);
  if (isInvalidDate(value)) return JSON.stringify("(Invalid Date)");
  if (Array.isArray(value) && value.length > longestWritten && isMostlyHoles(value)) {
    return JSON.stringify(`(Array of ${value.length}, most of them missing)`);
  }
  if (builtin !== undefined) return JSON.stringify(`(${classOf(value)} ${builtin})`);
  // Errors and promises are refused elsewhere, with their own messages.
  if (!hidesContent(value) || value instanceof Promise || value instanceof Error) return undefined;
  return JSON.stringify(`(${classOf(value)} without members to compare: add a toJSON())`);
}

/**
 * True if objects are compared by the text of their content, because their properties do not show
 * all of it.
 */
export function isTextual(value: object): boolean {
  return bytesOf(value) !== undefined || builtinText(value) !== undefined || hidesContent(value);
}

/** Returns the name of an object's class, or `Object` if the class has no name. */
export function classOf(value: unknown): string {
  const { constructor } = value as { readonly constructor?: unknown };
  return typeof constructor === "function" ? constructor.name : "Object";
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!(value instanceof DataView)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

/** True for an invalid Date. JSON would write it as `null`, which means "no date". */
function isInvalidDate(value: unknown): boolean {
  return value instanceof Date && (value.toJSON() as unknown) === null;
}

function builtinText(value: unknown): string | undefined {
  return value instanceof RegExp || value instanceof URLSearchParams ? String(value) : undefined;
}

/** True if an object has neither own properties nor a `toJSON()`, which would show its content. */
function hidesContent(value: unknown): value is object {
  if (typeof value !== "object" || value === null || "toJSON" in value) return false;
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return false;
  return Object.keys(value).length === 0 && classOf(value) !== "Object";
}

/**
 * Maximum number of indexes of a list that are written, including holes. Longer lists would take
 * too long.
 */
const longestWritten = 1000;

/** Maximum number of numbers in a description. */
const maxShown = 64;

function describe(numbers: Numbers): string {
  const shown = Array.from({ length: Math.min(numbers.length, maxShown) }, (_, n) => numbers[n]);
  const more = numbers.length > maxShown ? ", …" : "";
  return `${numbers.length}: ${shown.join(", ")}${more}`;
}

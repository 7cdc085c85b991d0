import { isMostlyHoles } from "./state/sparse-list.ts";

/** Numbers of one size in a row, whose members are those numbers. */
export type Numbers = ArrayLike<number | bigint>;

export function isNumbers(value: unknown): value is Numbers {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/**
 * What tells objects apart whose content is in no members of their own, as a text that is no JSON; nothing
 * for any other value. What nobody can look into, such as an instance of a class with private fields, is told
 * from all but itself by `idOf`.
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

/** The same for people, as JSON. */
export function shownContent(value: unknown): string | undefined {
  const bytes = isNumbers(value) ? value : bytesOf(value);
  const builtin = builtinText(value);
  if (bytes !== undefined) return JSON.stringify(`(${classOf(value)} of ${describe(bytes)})`);
  if (isInvalidDate(value)) return JSON.stringify("(Invalid Date)");
  if (Array.isArray(value) && value.length > longestWritten && isMostlyHoles(value)) {
    return JSON.stringify(`(Array of ${value.length}, most of them missing)`);
  }
  if (builtin !== undefined) return JSON.stringify(`(${classOf(value)} ${builtin})`);
  // Those have an error of their own.
  if (!hidesContent(value) || value instanceof Promise || value instanceof Error) return undefined;
  return JSON.stringify(
    `(${classOf(value)} without members that could be compared: a toJSON() gives it some)`,
  );
}

/** Whether an object is compared as a whole: it has no members, or none that tell all of it. */
export function isTextual(value: object): boolean {
  return bytesOf(value) !== undefined || builtinText(value) !== undefined || hidesContent(value);
}

/** The class that an object is of; `Object` where it is of none. */
export function classOf(value: unknown): string {
  const { constructor } = value as { readonly constructor?: unknown };
  return typeof constructor === "function" ? constructor.name : "Object";
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!(value instanceof DataView)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

/** A Date that is none is written as `null`, which says that there is none. */
function isInvalidDate(value: unknown): boolean {
  return value instanceof Date && (value.toJSON() as unknown) === null;
}

function builtinText(value: unknown): string | undefined {
  return value instanceof RegExp || value instanceof URLSearchParams ? String(value) : undefined;
}

/** One with members of its own, or with a `toJSON()`, is taken at their word. */
function hidesContent(value: unknown): value is object {
  if (typeof value !== "object" || value === null || "toJSON" in value) return false;
  if (Array.isArray(value) || value instanceof Map || value instanceof Set) return false;
  return Object.keys(value).length === 0 && classOf(value) !== "Object";
}

/** Places of a list that are written, however few of them hold anything; more would take longer than they are worth. */
const longestWritten = 1000;

/** Most numbers that are shown. */
const maxShown = 64;

function describe(numbers: Numbers): string {
  const shown = Array.from({ length: Math.min(numbers.length, maxShown) }, (_, n) => numbers[n]);
  const more = numbers.length > maxShown ? ", …" : "";
  return `${numbers.length}: ${shown.join(", ")}${more}`;
}

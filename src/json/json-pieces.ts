/** The largest weight of one piece: about a millisecond of work. */
export const defaultLimit = 8192;

/** The number of text characters that weigh as much as one number. */
const charactersPerUnit = 16;

/** A part of a value's JSON: text, or values that are still to be written. */
export type JsonPart = string | RepeatedItem | NumberStretch;

/** A list item that is repeated, with commas between. */
export interface RepeatedItem {
  readonly type: "repeated";
  /** The item as JSON. */
  readonly text: string;
  /** The number of repetitions, at least 1. */
  readonly count: number;
}

/** Numbers of a list, with commas between, from index `first` to `last` (exclusive). */
export interface NumberStretch {
  readonly type: "numbers";
  readonly list: ArrayLike<number>;
  readonly first: number;
  readonly last: number;
}

/**
 * Yields the text of `JSON.stringify(value)` in pieces that each take little time, so that the writer of a long row
 * can let other work run in between. A small value is one piece.
 *
 * @param limit - The largest piece, in numbers (or 16 characters each), at least 1.
 */
export function* jsonPieces(value: unknown, limit: number = defaultLimit): Generator<string> {
  for (const part of jsonParts(value, limit)) yield spellPart(part);
}

/** Yields the same pieces for a writer that writes numbers and repeated items itself. */
export function* jsonParts(value: unknown, limit: number = defaultLimit): Generator<JsonPart> {
  if (isLight(value, limit)) yield JSON.stringify(value) ?? "null";
  else if (typeof value === "string") yield* textPieces(value, limit * charactersPerUnit);
  else if (hasToJson(value)) yield* jsonParts(value.toJSON(""), limit);
  else if (Array.isArray(value)) yield* listParts(value, limit);
  else yield* memberParts(value as object, { limit });
}

/** Returns the text of a part. */
export function spellPart(part: JsonPart): string {
  if (typeof part === "string") return part;
  if (part.type === "repeated") return `${part.text},`.repeat(part.count).slice(0, -1);
  const { list, first, last } = part;
  const numbers: unknown[] = Array.prototype.slice.call(list, first, last);
  return JSON.stringify(numbers).slice(1, -1);
}

/** True if `jsonPieces()` would make the value's text in one piece. */
export function isLight(value: unknown, limit: number = defaultLimit): boolean {
  const canBeCut = typeof value === "string" || (typeof value === "object" && value !== null);
  return !canBeCut || weigh(value, limit) >= 0;
}

function* listParts(items: readonly unknown[], limit: number): Generator<JsonPart> {
  let separator = "[";
  for (let start = 0; start < items.length; separator = ",") {
    yield separator;
    const end = endOfRun(items, start, limit);
    if (end - start >= shortestRun) {
      yield { type: "repeated", text: JSON.stringify(items[start]), count: end - start };
      start = end;
      continue;
    }
    const mixed = endOfMixed(items, start, limit);
    if (mixed.end === start) yield* jsonParts(items[start++], limit);
    else {
      const stretch = { list: items as readonly number[], first: start, last: mixed.end };
      const part = { type: "numbers", ...stretch } as const;
      yield mixed.areNumbers ? part : spellPart(part);
      start = mixed.end;
    }
  }
  yield separator === "[" ? "[]" : "]";
}

/** The shortest repetition that is written as a repeated item: masks and version names repeat often. */
const shortestRun = 16;

/** The index after the run of equal numbers or texts that starts at `start`, at most `limit` items away. */
function endOfRun(items: readonly unknown[], start: number, limit: number): number {
  const item = items[start];
  const isShort = typeof item === "string" && item.length <= charactersPerUnit;
  if (typeof item !== "number" && !isShort) return start;
  const most = Math.min(start + limit, items.length);
  let end = start + 1;
  while (end < most && items[end] === item) end++;
  return end;
}

/**
 * The end of the next piece of items that are not repeated, and a flag that is true if all of them are numbers. The
 * end is `start` if the first item is too heavy for a piece.
 */
function endOfMixed(
  items: readonly unknown[],
  start: number,
  limit: number,
): { readonly end: number; readonly areNumbers: boolean } {
  let budget = limit;
  let end = start;
  let areNumbers = true;
  while (end < items.length) {
    const item = items[end];
    if (typeof item === "number") budget -= 1;
    else {
      budget = weigh(item, budget);
      if (budget >= 0) areNumbers = false;
    }
    if (budget < 0) break;
    end++;
    const isLookedAt = items[end] === item && items[end + shortestRun - 2] === item;
    if (isLookedAt && endOfRun(items, end - 1, shortestRun) - end + 1 === shortestRun) {
      // The run becomes a piece of its own.
      return { end: end - 1, areNumbers };
    }
  }
  return { end, areNumbers };
}

/**
 * Yields the parts of an object's JSON.
 *
 * @param options - `partsOf` returns the parts of a member's value, for callers that know more about it. It is called
 * before the member is read. `undefined` stands for the general parts.
 */
export function* memberParts(
  members: object,
  {
    limit = defaultLimit,
    partsOf = () => undefined,
  }: {
    readonly limit?: number;
    readonly partsOf?: (name: string) => Iterable<JsonPart> | undefined;
  } = {},
): Generator<JsonPart> {
  let separator = "";
  yield "{";
  for (const key of Object.keys(members)) {
    const known = partsOf(key);
    if (known !== undefined) {
      yield `${separator}${JSON.stringify(key)}:`;
      yield* known;
      separator = ",";
      continue;
    }
    const own = (members as Readonly<Record<string, unknown>>)[key];
    const value: unknown = hasToJson(own) ? own.toJSON(key) : own;
    if (value === undefined || typeof value === "function" || typeof value === "symbol") continue;
    yield `${separator}${JSON.stringify(key)}:`;
    yield* jsonParts(value, limit);
    separator = ",";
  }
  yield "}";
}

function* textPieces(text: string, length: number): Generator<string> {
  yield '"';
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + length, text.length);
    // Keeps the halves of a surrogate pair together: single halves would be escaped.
    if (isHighSurrogate(text.charCodeAt(end - 1)) && isLowSurrogate(text.charCodeAt(end))) end++;
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield '"';
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return typeof (value as { toJSON?: unknown } | null | undefined)?.toJSON === "function";
}

/** The budget that is left after a value; below 0 as soon as the value is too heavy. */
function weigh(value: unknown, budget: number): number {
  if (typeof value === "string") return budget - 1 - value.length / charactersPerUnit;
  if (typeof value !== "object" || value === null) return budget - 1;
  let left = budget - 1;
  if (Array.isArray(value)) {
    if (value.length > left) return -1;
    if (looksUniform(value[0], value.at(-1))) return left - value.length;
    for (let index = 0; index < value.length && left >= 0; index++) {
      left = weigh(value[index], left);
    }
    return left;
  }
  // Avoids a list of the keys, since each episode's row passes here. Inherited keys only add weight.
  for (const key in value) {
    if (left < 0) return left;
    left = weigh((value as Readonly<Record<string, unknown>>)[key], left);
  }
  return left;
}

/**
 * True if the first and last item suggest numbers or one repeated short text. If that is wrong, a piece takes more
 * time, with the same result.
 */
function looksUniform(first: unknown, last: unknown): boolean {
  if (typeof first === "number") return typeof last === "number";
  return typeof first === "string" && first.length <= charactersPerUnit && first === last;
}

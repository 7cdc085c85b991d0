/** What one piece may weigh: about a millisecond of work at most. */
const defaultLimit = 8192;

/** Characters of a text that weigh as much as a number. */
const charactersPerUnit = 16;

/** A part of a value's JSON, made or still to be spelled. */
export type JsonPart = string | RepeatedItem | NumberStretch;

/** An item of a list, several times, with commas between. */
export interface RepeatedItem {
  readonly type: "repeated";
  /** As JSON. */
  readonly text: string;
  /** From 1. */
  readonly count: number;
}

/** Numbers of a list, with commas between: those from place `first` up to, not including, `last`. */
export interface NumberStretch {
  readonly type: "numbers";
  readonly list: readonly number[];
  readonly first: number;
  readonly last: number;
}

/**
 * The text of `JSON.stringify(value)` in pieces that each take little time to make, so that whoever
 * writes a long row can let others have their turn in between. Small values are one piece.
 *
 * @param limit - Numbers (or 16 characters each) that a piece may hold, at least 1.
 */
export function* jsonPieces(value: unknown, limit: number = defaultLimit): Generator<string> {
  for (const part of jsonParts(value, limit)) yield spellPart(part);
}

/** The pieces of `jsonPieces()`, for a writer that spells numbers and what is repeated itself. */
export function* jsonParts(value: unknown, limit: number = defaultLimit): Generator<JsonPart> {
  if (isLight(value, limit)) yield JSON.stringify(value) ?? "null";
  else if (typeof value === "string") yield* textPieces(value, limit * charactersPerUnit);
  else if (hasToJson(value)) yield* jsonParts(value.toJSON(""), limit);
  else if (Array.isArray(value)) yield* listParts(value, limit);
  else yield* memberParts(value as Readonly<Record<string, unknown>>, { limit });
}

/** The text of a part. */
export function spellPart(part: JsonPart): string {
  if (typeof part === "string") return part;
  if (part.type === "repeated") return `${part.text},`.repeat(part.count).slice(0, -1);
  return JSON.stringify(part.list.slice(part.first, part.last)).slice(1, -1);
}

/** Whether the value's text is made at once, as `jsonPieces()` would make it. */
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

/** How often one item must be repeated to be spelled once: masks and the names of versions are such. */
const shortestRun = 16;

/** Where the same number or text is no longer repeated, at most `limit` items away. */
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
 * Where the next piece of items that are not repeated ends, `start` where one is too heavy for a piece, and
 * whether all of them are numbers.
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
      // The run is a piece of its own.
      return { end: end - 1, areNumbers };
    }
  }
  return { end, areNumbers };
}

/**
 * The parts of an object's JSON.
 *
 * @param options - `lists` makes those of lists that are members of these names, of which more is known.
 */
export function* memberParts(
  members: Readonly<Record<string, unknown>>,
  {
    limit = defaultLimit,
    lists = {},
  }: {
    readonly limit?: number;
    readonly lists?: Readonly<
      Record<string, (list: readonly unknown[], limit: number) => Generator<JsonPart>>
    >;
  } = {},
): Generator<JsonPart> {
  let separator = "";
  yield "{";
  for (const key of Object.keys(members)) {
    const own = members[key];
    const value: unknown = hasToJson(own) ? own.toJSON(key) : own;
    if (value === undefined || typeof value === "function" || typeof value === "symbol") continue;
    yield `${separator}${JSON.stringify(key)}:`;
    const known = Object.hasOwn(lists, key) ? lists[key] : undefined;
    if (known !== undefined && Array.isArray(value)) yield* known(value, limit);
    else yield* jsonParts(value, limit);
    separator = ",";
  }
  yield "}";
}

function* textPieces(text: string, length: number): Generator<string> {
  yield '"';
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + length, text.length);
    // The halves of a surrogate pair stay together: alone they would be escaped.
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

/** What is left of the budget; below 0 as soon as the value is known to be too heavy. */
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
  // Without a list of the keys: each episode's line passes here whole. What is inherited only makes it heavier.
  for (const key in value) {
    if (left < 0) return left;
    left = weigh((value as Readonly<Record<string, unknown>>)[key], left);
  }
  return left;
}

/**
 * Most of what is long is numbers, or one short name again and again. Where it only looks so, a piece
 * takes more time to make, no more.
 */
function looksUniform(first: unknown, last: unknown): boolean {
  if (typeof first === "number") return typeof last === "number";
  return typeof first === "string" && first.length <= charactersPerUnit && first === last;
}

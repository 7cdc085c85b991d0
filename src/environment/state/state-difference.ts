import {
  toPlainJson,
  toPyValue,
  type PlainJson,
} from "../../../packages/python-values/src/value.ts";
import { briefValue } from "../brief-value.ts";
import { contentText, isNumbers, isTextual, shownContent, type Numbers } from "../content-text.ts";
import type { StateDifference } from "./difference.ts";
import { isNameless } from "./map-key.ts";
import { NotPlain, writeJsonWith } from "../plain-text.ts";

/** The most places that a difference lists. */
const maxPlaces = 100;

/** The differences of two states. */
interface FoundDifferences {
  /** At most a hundred places. */
  readonly state: readonly StateDifference[];
  /** The number of places that are not listed. */
  readonly moreState: number;
}

/**
 * Compares the members of `wanted` deeply with the members of the same name in the reached state; other members are
 * ignored. The first name of a place is its table, the second its record. Values that JSON cannot write, such as a
 * `NaN` from the policy, are allowed. An opaque object, such as one with private fields, equals only itself.
 *
 * @throws NotPlain if a promise is wanted, or if a compared Map has an object as a key.
 */
export function findDifferences(wanted: object, reached: object): FoundDifferences {
  const places: StateDifference[] = [];
  let count = 0;
  const note = (path: readonly string[], pair: readonly [unknown, unknown]): void => {
    count += 1;
    if (count <= maxPlaces) places.push(toPlace(path, pair));
  };
  const got = reached as Readonly<Record<string, unknown>>;
  for (const [name, value] of Object.entries(wanted)) compare([name], value, got[name], note);
  return { state: places, moreState: Math.max(count - maxPlaces, 0) };
}

type Note = (path: readonly string[], pair: readonly [wanted: unknown, got: unknown]) => void;

function compare(path: readonly string[], wanted: unknown, got: unknown, note: Note): void {
  if (Object.is(wanted, got) || (wanted === 0 && got === 0)) return;
  if (wanted instanceof Promise) {
    throw new NotPlain(`its ${path.join(".")} is a promise (a forgotten await?)`);
  }
  if (isNumbers(wanted) && isNumbers(got)) {
    compareNumbers(path, [wanted, got], note);
    return;
  }
  refuseNamelessKeys(path, wanted);
  refuseNamelessKeys(path, got);
  const left = membersOf(wanted);
  const right = membersOf(got);
  if (left === undefined || right === undefined || left.kind !== right.kind) {
    if (left === undefined && right === undefined && isSameText(wanted, got)) return;
    note(path, [wanted, got]);
    return;
  }
  if (left.kind === "list" && left.size !== right.size) {
    // No difference was found further down, so the two values are shown completely.
    note(path, [wanted, got]);
    return;
  }
  if (left.kind === "set") {
    if (!isSameSet(wanted as Set<unknown>, got as Set<unknown>)) note(path, [wanted, got]);
    return;
  }
  for (const [key, value] of left.members)
    compare([...path, key], value, right.members.get(key), note);
  for (const [key, value] of right.members) {
    if (!left.members.has(key)) compare([...path, key], undefined, value, note);
  }
}

/** Refuses object keys: members are compared by name, and all objects have the same name. */
function refuseNamelessKeys(path: readonly string[], value: unknown): void {
  if (!(value instanceof Map)) return;
  for (const key of value.keys()) {
    if (!isNameless(key)) continue;
    throw new NotPlain(`its ${path.join(".")} has an object as a key, expected texts or numbers`);
  }
}

/** Compares typed arrays in a loop, since they may be very long. */
function compareNumbers(
  path: readonly string[],
  [wanted, got]: readonly [Numbers, Numbers],
  note: Note,
): void {
  for (let n = 0; n < Math.max(wanted.length, got.length); n++) {
    if (wanted[n] !== got[n]) compare([...path, String(n)], wanted[n], got[n], note);
  }
}

interface Members {
  readonly kind: "list" | "map" | "set";
  readonly size: number;
  readonly members: ReadonlyMap<string, unknown>;
}

function membersOf(value: unknown): Members | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!isNumbers(value) && ("toJSON" in value || isTextual(value))) return undefined;
  if (Array.isArray(value)) {
    // A sparse list may have far more indexes than items.
    const places = Object.keys(value);
    // Keys that are not indexes come last.
    while (places.length > 0 && !/^\d+$/.test(places.at(-1)!)) places.pop();
    const members = new Map(places.map((key) => [key, value[Number(key)] as unknown]));
    return { kind: "list", size: value.length, members };
  }
  if (value instanceof Set) return { kind: "set", size: value.size, members: new Map() };
  const entries: Iterable<readonly [unknown, unknown]> =
    value instanceof Map ? value : Object.entries(value).filter(([, one]) => one !== undefined);
  const members = new Map(Array.from(entries, ([key, one]) => [String(key), one]));
  return { kind: "map", size: members.size, members };
}

/** True if two Sets have equal members in any order. */
function isSameSet(wanted: ReadonlySet<unknown>, got: ReadonlySet<unknown>): boolean {
  if (wanted.size !== got.size) return false;
  const textOf = textWriter();
  const texts = new Set(Array.from(got, textOf));
  return Array.from(wanted, textOf).every((text) => text !== undefined && texts.has(text));
}

function isSameText(wanted: unknown, got: unknown): boolean {
  if (typeof wanted !== "object" || typeof got !== "object") return false;
  // An object that is written as `null` still differs from `null`.
  if (wanted === null || got === null) return false;
  const textOf = textWriter();
  const text = textOf(wanted);
  return text !== undefined && text === textOf(got);
}

/**
 * Returns a function that writes equal values as equal texts; it returns `undefined` for a value that nests too
 * deeply.
 */
function textWriter(): (value: unknown) => string | undefined {
  const ids = new Map<unknown, number>();
  const idOf = (value: unknown): number => {
    if (!ids.has(value)) ids.set(value, ids.size);
    return ids.get(value)!;
  };
  return (value) => {
    try {
      return writeJsonWith(value, (held) => contentText(held, idOf));
    } catch (error) {
      if (!(error instanceof NotPlain)) throw error;
      return undefined;
    }
  };
}

function toPlace(
  [table = "", record = "", ...rest]: readonly string[],
  [wanted, got]: readonly [unknown, unknown],
): StateDifference {
  const field = rest.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`)).join("");
  return {
    table,
    record,
    field: field.replace(/^\./, ""),
    ...(wanted !== undefined && { wanted: brief(wanted) }),
    ...(got !== undefined && { got: brief(got) }),
  };
}

function brief(value: unknown): unknown {
  try {
    const plain = JSON.parse(writeJsonWith(value, shownContent)) as PlainJson;
    return toPlainJson(briefValue(toPyValue(plain)));
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    return `(cannot be written: ${error.message})`;
  }
}

import { toPlainJson, toPyValue, type PlainJson } from "../../python/value.ts";
import { briefValue } from "../brief-value.ts";
import { contentText, isNumbers, isTextual, shownContent, type Numbers } from "../content-text.ts";
import type { StateDifference } from "./difference.ts";
import { isNameless } from "./map-key.ts";
import { NotPlain, writeJsonWith } from "../plain-text.ts";

/** Most places that a difference lists. */
const maxPlaces = 100;

/** Where two states differ. */
interface FoundDifferences {
  /** At most a hundred places. */
  readonly state: readonly StateDifference[];
  /** Places beyond those. */
  readonly moreState: number;
}

/**
 * Where what was reached is not what was wanted: the members of `wanted` are compared, deep, each with
 * the state's of the same name, and no others. The first name of a place is its table, the second its
 * record. Either may hold what cannot be written, such as a `NaN` that came of what the policy wrote. An object
 * whose content is in no members, such as one with private fields, is different from all but itself.
 *
 * @throws NotPlain where a promise is wanted, or a Map that is compared has an object as a key.
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
    // What comes before what says nothing here; the two are shown as a whole.
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

/** Members are compared by their names, and objects would have one name together. */
function refuseNamelessKeys(path: readonly string[], value: unknown): void {
  if (!(value instanceof Map)) return;
  for (const key of value.keys()) {
    if (!isNameless(key)) continue;
    throw new NotPlain(`its ${path.join(".")} has an object as a key, expected texts or numbers`);
  }
}

/** There may be very many. */
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
    // One may have places that nothing is at, far more of them than items.
    const places = Object.keys(value);
    // What are no places comes last.
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

/** Whatever the order in which they were filled. */
function isSameSet(wanted: ReadonlySet<unknown>, got: ReadonlySet<unknown>): boolean {
  if (wanted.size !== got.size) return false;
  const textOf = textWriter();
  const texts = new Set(Array.from(got, textOf));
  return Array.from(wanted, textOf).every((text) => text !== undefined && texts.has(text));
}

function isSameText(wanted: unknown, got: unknown): boolean {
  if (typeof wanted !== "object" || typeof got !== "object") return false;
  // Whatever it is written as, an object is not nothing.
  if (wanted === null || got === null) return false;
  const textOf = textWriter();
  const text = textOf(wanted);
  return text !== undefined && text === textOf(got);
}

/** Writes values so that those are alike whose texts are; nothing for what is nested too deeply. */
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

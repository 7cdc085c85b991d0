import { toPlainJson, toPyValue, type PlainJson } from "../python/value.ts";
import { briefValue } from "./brief-value.ts";
import type { StateDifference } from "./difference.ts";
import { NotPlain, writePlainJson } from "./plain-text.ts";

/** Most places that a difference lists. */
const maxPlaces = 100;

/** Where two states differ. */
export interface FoundDifferences {
  /** At most a hundred places. */
  readonly state: readonly StateDifference[];
  /** Places beyond those. */
  readonly moreState: number;
}

/**
 * Where what was reached is not what was wanted: the members of `wanted` are compared, deep, each with
 * the state's of the same name, and no others. The first name of a place is its table, the second its
 * record. What was reached may hold what cannot be written, such as a `NaN` that came of what the policy
 * wrote: that is different from all that can be.
 *
 * @throws NotPlain where it is `wanted` that cannot be written.
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
  const left = membersOf(wanted);
  const right = membersOf(got);
  if (left === undefined || right === undefined || left.kind !== right.kind) {
    if (left === undefined && right === undefined && isSameText(wanted, got)) return;
    note(path, [wanted, got]);
    return;
  }
  if (left.kind === "set" || (left.kind === "list" && left.size !== right.size)) {
    // What comes before what says nothing here; the two are shown as a whole.
    if (!isSameText(wanted, got)) note(path, [wanted, got]);
    return;
  }
  for (const [key, value] of left.members)
    compare([...path, key], value, right.members.get(key), note);
  for (const [key, value] of right.members) {
    if (!left.members.has(key)) compare([...path, key], undefined, value, note);
  }
}

interface Members {
  readonly kind: "list" | "map" | "set";
  readonly size: number;
  readonly members: ReadonlyMap<string, unknown>;
}

function membersOf(value: unknown): Members | undefined {
  if (typeof value !== "object" || value === null || "toJSON" in value) return undefined;
  if (Array.isArray(value)) {
    const members = new Map(value.map((item: unknown, index) => [String(index), item]));
    return { kind: "list", size: members.size, members };
  }
  if (value instanceof Set) return { kind: "set", size: value.size, members: new Map() };
  const entries: Iterable<readonly [unknown, unknown]> =
    value instanceof Map ? value : Object.entries(value).filter(([, one]) => one !== undefined);
  const members = new Map(Array.from(entries, ([key, one]) => [String(key), one]));
  return { kind: "map", size: members.size, members };
}

/** Sets are the same whatever the order in which they were filled. */
function isSameText(wanted: unknown, got: unknown): boolean {
  if (wanted instanceof Set && got instanceof Set) {
    const texts = new Set(Array.from(got, textOfReached));
    return (
      wanted.size === got.size && Array.from(wanted).every((one) => texts.has(writePlainJson(one)))
    );
  }
  if (typeof wanted !== "object" || typeof got !== "object") return false;
  return writePlainJson(wanted) === textOfReached(got);
}

/** What was reached as JSON; nothing where it cannot be written. */
function textOfReached(got: unknown): string | undefined {
  try {
    return writePlainJson(got);
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    return undefined;
  }
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
    ...(wanted === undefined ? {} : { wanted: brief(writePlainJson(wanted)) }),
    ...(got === undefined ? {} : { got: briefReached(got) }),
  };
}

function brief(text: string): unknown {
  const plain = JSON.parse(text) as PlainJson;
  return toPlainJson(briefValue(toPyValue(plain)));
}

function briefReached(got: unknown): unknown {
  try {
    return brief(writePlainJson(got));
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    return `(cannot be written: ${error.message})`;
  }
}

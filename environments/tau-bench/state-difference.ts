import { briefValue } from "../../src/environment/brief-value.ts";
import type { Difference, StateDifference } from "../../src/environment/state/difference.ts";
import { compareCodePoints } from "../../packages/python-values/src/text/compare-code-points.ts";
import { pythonRepr } from "../../packages/python-values/src/text/repr.ts";
import type { PyDict, PyList, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList, toPlainJson } from "../../packages/python-values/src/value.ts";
import { sameText } from "./database-text.ts";
import type { Tables } from "./tau-domain.ts";

/** The most places that are listed; further ones are only counted. */
const maxPlaces = 100;

/**
 * Returns the differences of two databases over the same base: by table, record and field. Empty exactly if
 * τ-bench's hashes agree: an integer and a float of the same value differ.
 */
export function stateDifference(
  reached: Tables,
  wanted: Tables,
): Pick<Difference, "state" | "moreState"> {
  const state: StateDifference[] = [];
  let moreState = 0;
  for (const [table, records] of Object.entries(reached)) {
    const others = wanted[table];
    const ids = new Set([...records.changes.keys(), ...(others?.changes.keys() ?? [])]);
    for (const record of [...ids].sort(compareCodePoints)) {
      const pair = { got: records.get(record), wanted: others?.get(record) };
      for (const { field, ...values } of compare(pair, "")) {
        if (state.length < maxPlaces) state.push({ table, record, ...describe(values, field) });
        else moreState += 1;
      }
    }
  }
  return moreState === 0 ? { state } : { state, moreState };
}

interface Place extends Pair {
  readonly field: string;
}

/** The values of both sides; `undefined` for a missing one. */
interface Pair {
  readonly wanted: PyValue | undefined;
  readonly got: PyValue | undefined;
}

function* compare({ wanted, got }: Pair, field: string): Generator<Place> {
  if (wanted === got) return;
  if (isPyDict(wanted) && isPyDict(got)) {
    yield* compareMembers(wanted, got, field);
  } else if (isPyList(wanted) && isPyList(got)) {
    yield* compareItems(wanted, got, field);
  } else if (wanted === undefined || got === undefined) {
    yield { wanted, got, field };
  } else if (!sameText(got, wanted)) {
    yield { wanted, got, field };
  }
}

function* compareMembers(wanted: PyDict, got: PyDict, field: string): Generator<Place> {
  for (const key of new Set([...wanted.keys(), ...got.keys()])) {
    const isName = /^[A-Za-z_]\w*$/.test(key);
    const step = isName ? (field === "" ? key : `.${key}`) : `[${JSON.stringify(key)}]`;
    yield* compare({ wanted: wanted.get(key), got: got.get(key) }, field + step);
  }
}

function* compareItems(wanted: PyList, got: PyList, field: string): Generator<Place> {
  for (let index = 0; index < Math.max(wanted.length, got.length); index++) {
    yield* compare({ wanted: wanted[index], got: got[index] }, `${field}[${index}]`);
  }
}

function describe(pair: Pair, field: string): Omit<StateDifference, "table" | "record"> {
  const wanted = pair.wanted === undefined ? undefined : briefValue(pair.wanted);
  const got = pair.got === undefined ? undefined : briefValue(pair.got);
  const place = {
    field,
    ...(wanted !== undefined && { wanted: toPlainJson(wanted) }),
    ...(got !== undefined && { got: toPlainJson(got) }),
  };
  if (wanted === undefined || got === undefined) return place;
  const printsAlike = JSON.stringify(place.wanted) === JSON.stringify(place.got);
  const isOutsideJson = [place.wanted, place.got].some(
    (value) => typeof value === "number" && !Number.isFinite(value),
  );
  if (!printsAlike && !isOutsideJson) return place;
  return { ...place, note: `${pythonRepr(wanted)} wanted, ${pythonRepr(got)} got` };
}

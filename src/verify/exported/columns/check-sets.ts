import type { PlacedArray } from "../../../export/columns/column-sink.ts";
import { quote } from "../../../trajectory/violation.ts";
import type { ArraysReader } from "./arrays-reader.ts";
import type { FoundSets } from "./found-arrays.ts";

/** Checks sets of kept tokens that lie within the file. Reports the first wrong one. */
export async function checkSets(
  { place, form, tokens, mask }: FoundSets,
  placed: { readonly ids: PlacedArray; readonly bounds: PlacedArray | undefined },
  arrays: ArraysReader,
): Promise<readonly string[]> {
  const ids = Array.from(await arrays.values(placed.ids));
  const bounds = placed.bounds && Array.from(await arrays.values(placed.bounds));
  const [, width = 0] = placed.ids.shape;
  const sets =
    form === "support"
      ? supportSets(ids, placed.ids.shape[0]!, width)
      : boundedSets(ids, form === "offsets" ? bounds! : offsetsOf(bounds!));
  if (typeof sets === "string") return [`${place}: ${sets}`];
  if (sets.length !== tokens.length) {
    return [`${place} has sets for ${sets.length} ids, expected ${tokens.length}`];
  }
  for (const [index, set] of sets.entries()) {
    const what = checkSet(set, tokens[index], mask[index] === 1);
    if (what !== undefined) return [`${place}, set ${index}: ${what}`];
  }
  return [];
}

function checkSet(set: readonly number[], token: unknown, isTrained: boolean): string | undefined {
  const wrong = set.find((id) => id < 0);
  if (wrong !== undefined) return `${wrong} is no token id`;
  if (!isTrained) return set.length === 0 ? undefined : "the id was not sampled, and has a set";
  if (set.includes(token as number)) return undefined;
  return `the sampled id ${quote(token)} is not in its set ${quote(set)}`;
}

function offsetsOf(counts: readonly number[]): readonly number[] {
  const offsets = [0];
  for (const count of counts) offsets.push(offsets.at(-1)! + count);
  return offsets;
}

function boundedSets(
  ids: readonly number[],
  offsets: readonly number[],
): readonly (readonly number[])[] | string {
  const isOrdered = offsets.every((offset, index) => index === 0 || offset >= offsets[index - 1]!);
  if (offsets[0] !== 0 || !isOrdered || offsets.at(-1) !== ids.length) {
    return `the bounds do not divide ${ids.length} ids: they begin at 0, ascend and end there`;
  }
  return offsets.slice(1).map((end, index) => ids.slice(offsets[index], end));
}

function supportSets(
  ids: readonly number[],
  count: number,
  width: number,
): readonly (readonly number[])[] | string {
  const sets = Array.from({ length: count }, (_, row) => {
    const own = ids.slice(row * width, (row + 1) * width);
    const end = own.indexOf(-1);
    return { set: end < 0 ? own : own.slice(0, end), rest: end < 0 ? [] : own.slice(end) };
  });
  const wrong = sets.findIndex(({ rest }) => rest.some((id) => id !== -1));
  return wrong < 0 ? sets.map(({ set }) => set) : `row ${wrong} has an id after -1`;
}

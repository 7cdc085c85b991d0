import type { ColumnPart } from "../../columns/column-part.ts";
import type { ColumnSource } from "../../columns/column-source.ts";
import type { ColumnSpecs } from "../../columns/column-specs.ts";
import { decodeRagged } from "../../columns/ragged-rows.ts";
import { inventedRoutes, inventedSet, inventedTop } from "../../testing/column-engine.ts";
import type { Sample } from "../../trajectory/sample.ts";

/**
 * Compares the columns of a row with those that `withInventedColumns()` computed. Returns a description of each part
 * that is missing, doubled, shifted, changed, or marked with another version than the one that computed it.
 */
export async function inventedFaults(
  row: Sample,
  { source, specs }: { readonly source: ColumnSource; readonly specs: Required<InventedSpecs> },
): Promise<readonly string[]> {
  const { columns, tokenIds } = row;
  const { routedExperts = [], keptTokens = [], topLogprobs = [] } = columns ?? {};
  const faults: string[] = [];
  let next = 0;
  for (const part of routedExperts) {
    const { from, rows, policyVersion } = part;
    if (from !== next) faults.push(`routes from ${from}, not ${next}`);
    next = from + rows;
    const about = { from, rows, policyVersion, shape: specs.routedExperts };
    const wanted = inventedRoutes(tokenIds, about);
    const bytes = await source.read(part);
    if (!Buffer.from(wanted).equals(bytes)) faults.push(`routes from ${from} are not invented`);
  }
  // Ids after the last sampled one may have no routes.
  const isWhole = next >= row.lossMask.lastIndexOf(1) && next < tokenIds.length;
  if (!isWhole) faults.push(`routes of ${next} of ${tokenIds.length} tokens`);
  for (const part of keptTokens) {
    const own = tokenIds.slice(part.from, part.from + part.rows);
    const sets = own.map((id) => inventedSet(id, specs.keptTokens.maxCount));
    const bytes = await source.read(part);
    const { counts, ids } = decodeRagged(bytes, { rows: part.rows, hasLogprobs: false });
    const isSame =
      [...ids].join() === sets.flat().join() &&
      [...counts].join() === sets.map(({ length }) => length).join();
    if (!isSame) faults.push(`sets from ${part.from} are not invented`);
  }
  for (const part of topLogprobs) {
    const own = tokenIds.slice(part.from, part.from + part.rows);
    const { ids } = decodeRagged(await source.read(part), { rows: part.rows, hasLogprobs: true });
    const wanted = own.flatMap((id) => inventedTop(id, specs.topLogprobs.count));
    if ([...ids].join() !== wanted.join()) faults.push(`tops from ${part.from} are not invented`);
  }
  return [...faults, ...sampledFaults(row, keptTokens), ...sampledFaults(row, topLogprobs)];
}

/** Specs of all columns that `withInventedColumns()` returns. */
export type InventedSpecs = Pick<ColumnSpecs, "routedExperts" | "keptTokens" | "topLogprobs">;

/** Checks that parts cover each trained token once, and have the version that sampled it. */
function sampledFaults(
  { lossMask, policyVersions }: Sample,
  parts: readonly ColumnPart[],
): readonly string[] {
  const faults: string[] = [];
  const covered = lossMask.map(() => 0);
  for (const { from, rows, policyVersion } of parts) {
    for (let place = from; place < from + rows; place++) {
      covered[place]! += 1;
      if (policyVersions[place] !== policyVersion) {
        faults.push(`token ${place} is of ${policyVersions[place]}, its part of ${policyVersion}`);
      }
    }
  }
  const wrong = lossMask.findIndex((bit, place) => covered[place] !== bit);
  if (wrong !== -1) faults.push(`token ${wrong} is in ${covered[wrong]} parts`);
  return faults;
}

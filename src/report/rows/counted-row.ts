import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import type { Episode } from "../../episode/episode.ts";
import { rowLineageOf } from "../../episode/row-lineage-of.ts";
import type { RowLineage } from "../../episode/row-lineage.ts";
import { countTrainedIn } from "../../trajectory/count-trained.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { isObject } from "../../values/is-object.ts";
import type { StoredRun } from "../read-run.ts";

/** A training row with trained tokens, as a report counts it. */
export interface CountedRow {
  readonly turnCount: number;
  readonly trainedTokenCount: number;
  /** The row's relation to other rows. Absent if the attempt has no other row with trained tokens. */
  readonly lineage?: Pick<RowLineage, "role" | "from">;
}

/** Counts a row; returns `undefined` if it trains no token. */
export function countRow(
  turns: Sample["turns"],
  lineage: CountedRow["lineage"],
): CountedRow | undefined {
  const trainedTokenCount = countTrainedIn(turns);
  if (trainedTokenCount === 0) return undefined;
  const counts = { turnCount: turns.length, trainedTokenCount };
  return lineage === undefined ? counts : { ...counts, lineage };
}

/** Counts the rows of an episode that has its ids. */
export function countRows(episode: Pick<Episode, "segments" | "tree">): readonly CountedRow[] {
  const lineage = rowLineageOf(episode);
  return episode.segments.flatMap(({ turns }, index) => countRow(turns, lineage[index]) ?? []);
}

/** Counts the rows of a run's finished episodes, by rollout id. Keeps only the counts in memory. */
export async function readCountedRows({
  samples,
}: Pick<StoredRun, "samples">): Promise<ReadonlyMap<string, readonly CountedRow[]>> {
  const found = new Map<string, CountedRow[]>();
  for await (const { rolloutId, turns, metadata } of samples()) {
    const { lineage } = metadata;
    const row = countRow(turns, isObject(lineage) ? (lineage as unknown as RowLineage) : undefined);
    if (row !== undefined) appendToList(found, rolloutId, row);
  }
  return found;
}

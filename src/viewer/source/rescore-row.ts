import type { Engine } from "../../engine/engine.ts";
import { UsageError } from "../../errors.ts";
import type { RowColumns } from "../model/row-columns.ts";

/** What computes logprobs once more. */
export interface Rescoring {
  /** One that can score. */
  readonly engine: Pick<Engine, "kind" | "score">;
  /** The temperature at which the run was sampled. */
  readonly temperature: number;
}

/**
 * The logprobs of a row's sampled ids, computed again by an engine, each behind exactly the ids that
 * stand before it: by place in the row, NaN where nothing was sampled.
 *
 * @throws UsageError where the engine cannot score.
 * @throws RolloutError as `Engine.score()` does.
 */
export async function rescoreRow(
  { header, ids }: Pick<RowColumns, "header" | "ids">,
  { engine, temperature }: Rescoring,
): Promise<Float64Array> {
  if (engine.score === undefined) {
    throw new UsageError(`Cannot score with ${engine.kind}: expected an engine that can`);
  }
  const found = new Float64Array(ids.length).fill(Number.NaN);
  const [first] = header.turns;
  const last = header.turns.at(-1);
  if (first === undefined || last === undefined || last.end === first.start) return found;
  const from = first.start;
  const scores = await engine.score({
    ids: [...ids.subarray(0, last.end)],
    from,
    sampling: { temperature },
  });
  for (const { start, end } of header.turns) {
    for (let index = start; index < end; index++) found[index] = scores[index - from]!;
  }
  return found;
}

import { toArray } from "../../values/to-array.ts";
import type { Engine } from "../../engine/engine.ts";
import { UsageError } from "../../errors.ts";
import type { RowColumns } from "../model/row-columns.ts";

/** The engine and the temperature with which `rescoreRow()` computes logprobs again. */
export interface Rescoring {
  /** An engine that can score. */
  readonly engine: Pick<Engine, "kind" | "score">;
  /** The temperature at which the run was sampled. */
  readonly temperature: number;
}

/**
 * Computes the logprobs of a row's sampled ids again with an engine, each after exactly the ids
 * before it. Returns one value per token, NaN for tokens that are not sampled.
 * @throws UsageError if the engine cannot score.
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
    ids: toArray(ids.subarray(0, last.end)),
    from,
    sampling: { temperature },
  });
  for (const { start, end } of header.turns) {
    for (let index = start; index < end; index++) found[index] = scores[index - from]!;
  }
  return found;
}

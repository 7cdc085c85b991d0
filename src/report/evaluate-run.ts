import type { Evaluation } from "./evaluation.ts";
import { EvaluationTally, type EvaluationPlan } from "./evaluation-tally.ts";
import { numberedEpisodes, type TrialNumbers } from "./number-trials.ts";
import type { StoredRun } from "./read-run.ts";
import { readCountedRows } from "./rows/counted-row.ts";

/**
 * Evaluates the numbered episodes of a run. Reads the training rows only if an attempt has several.
 * @throws UsageError if the run cannot be read.
 */
export async function evaluateRun(
  run: Pick<StoredRun, "rows" | "samples">,
  { plan, trials }: { readonly plan: EvaluationPlan; readonly trials: TrialNumbers },
): Promise<Evaluation> {
  const tally = new EvaluationTally(plan);
  const hasSeveralRows = [...trials.values()].some((place) => place.hasSeveralRows);
  const rows = hasSeveralRows ? await readCountedRows(run) : undefined;
  for await (const episode of numberedEpisodes(run, trials)) {
    tally.add(episode, rows?.get(episode.row.rolloutId));
  }
  return tally.evaluation();
}

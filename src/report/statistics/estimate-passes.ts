import { estimateMean, type Estimate } from "./interval.ts";
import { passAtK, passHatK } from "./pass-k.ts";

/** The scored attempts at one task. */
interface ScoredTask {
  readonly successCount: number;
  readonly scoredCount: number;
}

/** Estimates by k. A k for which no task has enough scored attempts is absent. JSON-able. */
export type PassEstimates = Readonly<Record<string, Estimate>>;

/** Estimates pass^k and pass@k for each given k, over the tasks that have at least k scored attempts. */
export function estimatePasses(
  tasks: readonly ScoredTask[],
  ks: readonly number[],
): { readonly passHatK: PassEstimates; readonly passAtK: PassEstimates } {
  const hat: Record<string, Estimate> = {};
  const at: Record<string, Estimate> = {};
  for (const k of ks) {
    const tallies = tasks
      .filter(({ scoredCount }) => scoredCount >= k)
      .map(({ successCount, scoredCount }) => ({ successCount, trialCount: scoredCount }));
    const attemptCount = tallies.reduce((total, { trialCount }) => total + trialCount, 0);
    const bounds = { range: [0, 1], attemptCount } as const;
    const [hatK, atK] = [passHatK, passAtK].map((passK) =>
      estimateMean(
        tallies.map((tally) => passK(tally, k)),
        bounds,
      ),
    );
    if (hatK !== undefined) hat[k] = hatK;
    if (atK !== undefined) at[k] = atK;
  }
  return { passHatK: hat, passAtK: at };
}

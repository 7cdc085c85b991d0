import { advantages, rewardsOf, rollout } from "turnwright";
import environment from "./library-desk.ts";

/** The part of a row that a trainer needs. */
export interface TrainingRow {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly logprobs: readonly number[];
  readonly advantage: number;
}

/** Passes `train` the rows of each task's four attempts, as soon as the last attempt has ended. */
export async function trainOnDesk(
  { url, model, signal }: { url: string; model: string; signal: AbortSignal },
  train: (rows: readonly TrainingRow[]) => Promise<void>,
): Promise<void> {
  const settings = { environment, url, model, signal, samples: 4, temperature: 1, maxTurns: 8 };
  for await (const group of rollout(settings)) {
    // An episode that failed (a dead server, a broken tool) has no reward, and gets no advantage.
    const values = advantages(rewardsOf(group), "grpo");
    const rows = group.episodes.flatMap(({ samples }, index) => {
      const advantage = values[index];
      return advantage === undefined ? [] : samples.map((row) => ({ ...row, advantage }));
    });
    await train(rows);
  }
}

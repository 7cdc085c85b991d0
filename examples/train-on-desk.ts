import { advantages, rollout } from "turnwright";
import environment from "./library-desk.ts";

/** What a trainer takes of a row. */
export interface TrainingRow {
  readonly tokenIds: readonly number[];
  readonly lossMask: readonly number[];
  readonly logprobs: readonly number[];
  readonly advantage: number;
}

/** Hands `train` the rows of each task's four attempts, as soon as the last of them has ended. */
export async function trainOnDesk(
  { url, model, signal }: { url: string; model: string; signal: AbortSignal },
  train: (rows: readonly TrainingRow[]) => Promise<void>,
): Promise<void> {
  const settings = { environment, url, model, signal, samples: 4, temperature: 1, maxTurns: 8 };
  for await (const { episodes } of rollout({ ...settings, group: true })) {
    // An episode that failed (a dead server, a broken tool) has no reward, and gets no advantage.
    const values = advantages(
      episodes.map(({ episode }) => episode.reward),
      "grpo",
    );
    const rows = episodes.flatMap(({ samples }, index) => {
      const advantage = values[index];
      return advantage === undefined ? [] : samples.map((row) => ({ ...row, advantage }));
    });
    await train(rows);
  }
}

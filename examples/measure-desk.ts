import { evaluate, readRun } from "turnwright";
import environment from "./library-desk.ts";

/** Measures a policy at the library desk, and lists the attempts with reward 0. */
export async function measureDesk(options: {
  readonly url: string;
  readonly model: string;
  readonly out: string;
}) {
  const { averageReward, passHatK } = await evaluate({ environment, trials: 2, ...options });
  const lost: string[] = [];
  const run = await readRun(options.out);
  for await (const { rolloutId, reward } of run.episodes()) {
    if (reward === 0) lost.push(rolloutId);
  }
  return { averageReward: averageReward?.value, passHat2: passHatK[2]?.value, lost };
}

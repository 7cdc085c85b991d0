import { createSeededRandom } from "../../src/environment/seeded-random.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { systemClock } from "../../src/async/clock.ts";
import { indexRecordings, readRecording } from "../../src/run/recording/read-recording.ts";
import { replayEpisode } from "../../src/run/recording/replay-episode.ts";
import { createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import type { FinishedRun } from "./check-run.ts";
import type { Scenario } from "./scenario.ts";
import { samplingSeed } from "./simulated-setup.ts";
import type { SimulatedWorld } from "./simulated-world.ts";
import { tallyAgent, tallyEnvironment, tallyUser } from "./tally-world.ts";

/** Replays every finished attempt from its recording alone, and compares the result to the byte. */
export async function checkReplays(
  { disk }: SimulatedWorld,
  { agent, taskCount }: Scenario,
  { episodes, options, samples }: FinishedRun,
): Promise<readonly string[]> {
  // One that does otherwise the second time cannot play anything again.
  if (agent === "fickle") return [];
  const wrong: string[] = [];
  const files = disk.files(() => undefined);
  const index = await indexRecordings(options.dir, { files, wants: () => true });
  const setup = setupOf(taskCount);
  for (const row of episodes) {
    const { rolloutId } = row;
    const ranges = index.get(rolloutId)?.ranges ?? [];
    const recorded = await readRecording(options.dir, {
      files,
      rolloutId,
      ranges,
      runId: undefined,
    });
    if (recorded === undefined) {
      // An attempt that lost its worker too often was not played to its end.
      if (row.outcome !== "failed") wrong.push(`${rolloutId} is finished and not recorded`);
      continue;
    }
    const own = samples.filter((sample) => sample.rolloutId === rolloutId);
    const verdict = await replayEpisode({ recorded, row, samples: own }, { setup });
    if (verdict.type === "identical") continue;
    const why = verdict.type === "differs" ? verdict.place : verdict.reason;
    wrong.push(`${rolloutId}, ${row.outcome}, is not the same when it is replayed: ${why}`);
  }
  return wrong;
}

/** There is no engine, no faults, and no random draws. */
function setupOf(taskCount: number): Parameters<typeof replayEpisode>[1]["setup"] {
  const random = createSeededRandom("replay");
  const around = { random, clock: systemClock, troubles: 0, draw: () => 0 };
  return {
    environment: tallyEnvironment(taskCount, around),
    user: tallyUser(around),
    engine: {
      kind: "none",
      generate: () => Promise.reject(new Error("a replay asks no engine")),
      describe: () => Promise.reject(new Error("a replay asks no engine")),
      close: () => Promise.resolve(),
    },
    renderer: createCharacterRenderer(),
    agent: tallyAgent("steady", random),
    sampling: { seed: samplingSeed },
    limits: { ...defaultLimits, maxTurns: 6 },
    now: () => 0,
  };
}

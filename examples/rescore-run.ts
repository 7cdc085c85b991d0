import type { Score } from "turnwright";
import { createReplay, openRecordedRun, type Bundle } from "turnwright/composition";
import { replayEpisode } from "turnwright/run";

/** An episode with a changed reward, and the bundle to play it again on another machine. */
export interface ChangedReward {
  readonly rolloutId: string;
  readonly before: number | undefined;
  readonly now: number | undefined;
  readonly bundle: Bundle;
}

/**
 * Finds the rewards of a recorded run that a new scoring changes. Needs neither an engine nor a key.
 */
export async function rescoreRun(
  dir: string,
  rescore: (score: Score) => Score,
): Promise<readonly ChangedReward[]> {
  const recorded = await openRecordedRun(dir);
  await using run = await createReplay(recorded);
  const { environment } = run.setup;
  const changed: typeof environment = {
    ...environment,
    async open(task, options) {
      const world = await environment.open(task, options);
      const score = world.score.bind(world);
      // Assigned on the world itself, because { ...world } omits the methods of its class.
      world.score = async (how) => rescore(await score(how));
      return world;
    },
  };
  const found: ChangedReward[] = [];
  for (const rolloutId of recorded.rolloutIds) {
    const stored = await recorded.read(rolloutId);
    if (stored === undefined) continue;
    const { redactor } = run;
    const setup = { ...run.setup, environment: changed };
    const verdict = await replayEpisode(stored, { setup, redactor, scoreAnew: true });
    if (!("episode" in verdict)) throw new Error(`${rolloutId}: ${verdict.reason}`);
    const [before, now] = [stored.row?.reward, verdict.episode.reward];
    if (before === now) continue;
    found.push({ rolloutId, before, now, bundle: await recorded.bundle(rolloutId) });
  }
  return found;
}

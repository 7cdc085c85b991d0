import { expect, test } from "vitest";
import type { Episode } from "../../episode/episode.ts";
import { PolicyVersions } from "./staleness.ts";

/** An episode with turns of one token each, sampled by these versions. */
function sampledBy(...names: readonly string[]): Episode {
  const turns = names.map((_, turnIndex) => ({ turnIndex, start: turnIndex, end: turnIndex + 1 }));
  const lossMask = names.map(() => 1);
  return { segments: [{ policyVersions: names, lossMask, turns }] } as unknown as Episode;
}

type Step = (versions: PolicyVersions) => void;

const announced =
  (version: number, deliveredCount: number): Step =>
  (versions) =>
    versions.announce(version, { deliveredCount });
const described =
  (name: string, deliveredCount: number): Step =>
  (versions) =>
    versions.seeDescribed(name, { deliveredCount });
const seen =
  (names: readonly string[], deliveredCount: number, recordedCount = 0): Step =>
  (versions) =>
    versions.see(sampledBy(...names), recordedCount, { deliveredCount });

/** Announces a version while other code drains the groups and the trainer uses `onEpisode`. */
const drained =
  (version: number, deliveredCount: number, endedCount: number): Step =>
  (versions) =>
    versions.announce(version, { deliveredCount, trainableNextCount: endedCount });

test.each<[what: string, steps: readonly Step[], count: number]>([
  ["nothing is known", [], 0],
  ["the first one is announced", [announced(7, 0)], 0],
  ["the first one is announced late", [announced(7, 1)], 0],
  ["a step was taken before any was announced", [announced(7, 2)], 1],
  ["two were taken, as far as anybody can tell one", [announced(7, 4)], 1],
  ["each step is announced", [announced(7, 0), announced(8, 2), announced(9, 4)], 2],
  ["some steps are announced", [announced(7, 0), announced(9, 4)], 2],
  ["a step takes fewer", [announced(7, 0), announced(8, 1), announced(9, 3)], 2],
  ["numbers are passed over", [announced(0, 0), announced(10, 2), announced(20, 4)], 2],
  ["a checkpoint is announced after the first", [announced(0, 0), announced(8, 0)], 0],
  ["a checkpoint comes to the engine", [described("0", 0), described("8", 0)], 0],
  ["it is announced", [described("0", 0), announced(8, 0), announced(9, 2)], 1],
  ["the engine has the first before it is announced", [described("1", 2), announced(1, 2)], 1],
  ["the engine has one before it is announced", [seen(["1"], 0), seen(["2"], 2)], 1],
  ["the trainer goes back", [announced(7, 0), announced(8, 2), announced(5, 2)], 1],
  ["and on", [announced(7, 0), announced(8, 2), announced(5, 2), announced(6, 4)], 2],
  [
    "the trainer goes back in place of a step",
    [announced(7, 0), announced(8, 2), announced(5, 4)],
    2,
  ],
  ["it does so again", [announced(7, 0), announced(6, 2), announced(5, 4), announced(6, 6)], 3],
  ["it goes back with part of a step", [announced(7, 0), announced(8, 2), announced(5, 3)], 1],
  ["groups are drained after it", [announced(7, 0), drained(8, 0, 2), drained(9, 2, 4)], 2],
  [
    "the same drained group is recorded twice",
    [announced(7, 0), drained(8, 0, 2), drained(8, 0, 2)],
    1,
  ],
  ["the engine counts otherwise", [seen(["100"], 0), announced(7, 0), seen(["101"], 2)], 0],
  ["the recorded turns are of newer weights", [seen(["9", "5"], 0, 1), described("6", 2)], 1],
  ["those are older", [seen(["1", "5"], 0, 1), described("6", 2)], 1],
])("the trainer's steps are counted if %s", (_, steps, count) => {
  const versions = new PolicyVersions(
    { max: 0, beyond: "wait", groupsPerVersion: 2 },
    () => undefined,
  );
  for (const step of steps) step(versions);
  expect(versions.mayStart(2 * count + 1)).toBe(true);
  expect(versions.mayStart(2 * count + 2)).toBe(false);
});

import { expect, test } from "vitest";
import type { EpisodeEntry } from "../episode-entry.ts";
import { withVersions } from "./with-versions.ts";

function stalenessOf(versions: Readonly<Record<string, readonly string[]>>) {
  const entries = Object.keys(versions).map((rolloutId) => ({ rolloutId }) as EpisodeEntry);
  return withVersions(entries, versions).map(({ staleness }) => staleness);
}

test("withVersions() counts the versions between an episode's oldest and the run's newest at its end", () => {
  expect(stalenessOf({ a: ["3"], b: ["3", "5"], c: ["4"], d: [], e: ["10"] })).toEqual([
    0,
    2,
    1,
    undefined,
    0,
  ]);
});

test("withVersions() leaves a branch's staleness open if the original's row is absent", () => {
  const entry = { rolloutId: "a", staleness: 7 } as EpisodeEntry;
  expect(withVersions([entry], { a: ["3"] })).toEqual([{ ...entry, versions: ["3"] }]);
});

test("withVersions() takes names in the order in which they appear", () => {
  expect(stalenessOf({ a: ["base"], b: ["tuned"], c: ["base", "tuned"] })).toEqual([0, 0, 1]);
  expect(stalenessOf({ a: [], b: [] })).toEqual([undefined, undefined]);
});

import { expect, test } from "vitest";
import type { EpisodeEntry } from "./episode-entry.ts";
import { withStaleness } from "./staleness.ts";

function stalenessOf(versions: Readonly<Record<string, readonly string[]>>) {
  const entries = Object.keys(versions).map((rolloutId) => ({ rolloutId }) as EpisodeEntry);
  return withStaleness(entries, versions).map(({ staleness }) => staleness);
}

test("withStaleness() counts the versions between an episode's oldest and the run's newest at its end", () => {
  expect(stalenessOf({ a: ["3"], b: ["3", "5"], c: ["4"], d: [], e: ["10"] })).toEqual([
    0,
    2,
    1,
    undefined,
    0,
  ]);
});

test("withStaleness() leaves a branch's staleness open if the original's row is absent", () => {
  const entry = { rolloutId: "a", staleness: 7 } as EpisodeEntry;
  expect(withStaleness([entry], { a: ["3"] })).toEqual([entry]);
});

test("withStaleness() takes names in the order in which they appear", () => {
  expect(stalenessOf({ a: ["base"], b: ["tuned"], c: ["base", "tuned"] })).toEqual([0, 0, 1]);
  expect(stalenessOf({ a: [], b: [] })).toEqual([undefined, undefined]);
});

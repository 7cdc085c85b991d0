import { expect, test } from "vitest";
import type { Episode } from "../episode/episode.ts";
import { lamp, lampTask, play, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { takeEpisode } from "../episode/play-foreign.ts";
import { parseEpisodeRow } from "../run/folder/episode-row.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import { RunTally } from "../run/run-progress.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { RolloutCheck } from "../trajectory/rollout-check.ts";
import { verifySample } from "../trajectory/verify-sample.ts";
import type { RawRow } from "../trajectory/violation.ts";
import { checkEpisode } from "./check-episode.ts";
import { compareSample } from "./compare-sample.ts";

type Path = readonly (string | number)[];

// A changed line can have any shape.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = Record<string | number, any>;

/** An episode of two turns with all that one may have. */
async function fullEpisode(): Promise<Json> {
  const { episode } = await play([says(switchCall), says("Goodbye!")]);
  const tree = episode.turns.map(({ promptTokenCount, sampledTokenCount }, turnIndex) => ({
    ...(turnIndex === 0 ? { cause: "first" } : { parent: turnIndex - 1 }),
    turnIndex,
    promptTokenCount,
    sampledTokenCount,
    outputHash: episode.segments[0]!.turns[turnIndex]!.outputHash,
    isDelivered: true,
    model: "policy",
  }));
  return {
    ...episode,
    groupIndex: 0,
    tree,
    userUsage: { ...episode.userUsage, costUsd: 0.5 },
    troubles: [{ party: "user", code: "user/timeout", message: "late" }],
  };
}

const values = [null, 5, -1, "x", [], {}, [null], undefined];

/** The value once for each of its members and each replacement; `undefined` removes the member. */
function* changed(value: Json): Generator<readonly [what: string, changed: Json]> {
  const tried = new Set<string>();
  for (const path of placesIn(value)) {
    // One member of each list represents all of them.
    const name = path.map((key) => (typeof key === "number" ? "#" : key)).join(".");
    if (tried.has(name)) continue;
    tried.add(name);
    for (const other of values) {
      const copy = structuredClone(value);
      const holder = path.slice(0, -1).reduce((at, key) => at[key] as Json, copy);
      const last = path.at(-1)!;
      if (other !== undefined) holder[last] = other;
      else if (Array.isArray(holder)) holder.splice(last as number, 1);
      else Reflect.deleteProperty(holder, last);
      yield [`${name} = ${JSON.stringify(other)}`, copy];
    }
  }
}

function* placesIn(value: unknown): Generator<Path> {
  if (typeof value !== "object" || value === null) return;
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    yield [key];
    for (const path of placesIn((value as Json)[key])) yield [key, ...path];
  }
}

/** Reads an episode's line and rows back, and returns the findings. */
function writtenAs(episode: Episode) {
  const samples = episodeSamples(episode).map((row) => JSON.parse(JSON.stringify(row)) as RawRow);
  const { segments: _ids, ...story } = episode;
  const line = JSON.stringify({ ...story, sampleHashes: samples.map(hashRow) });
  const { found, episode: row } = checkEpisode(JSON.parse(line) as RawRow);
  const together = new RolloutCheck();
  const inRows = samples.flatMap((sample, index) => [
    ...verifySample(sample, { mayBeCertain: true }),
    ...together.check(sample, index),
    ...(row === undefined ? [] : compareSample(sample, row)),
  ]);
  return { line, found: [...found, ...inRows] };
}

/** True if a start could resume from a line. */
function isCounted(line: string): boolean {
  const row = parseEpisodeRow(Buffer.from(line));
  if (row === undefined) return false;
  const tally = new RunTally({ now: () => 0 });
  tally.episodeResumed(row);
  return tally.progress().finished === 1;
}

test("a line without findings can be resumed from, after any change", async () => {
  const { segments: _ids, ...story } = await fullEpisode();
  const sound = { ...story, sampleHashes: [] };
  expect(checkEpisode(sound).found).toEqual([]);
  let passed = 0;
  for (const [what, row] of changed(sound)) {
    if (checkEpisode(row).found.length > 0) continue;
    expect(isCounted(JSON.stringify(row)), what).toBe(true);
    passed += 1;
  }
  expect(passed).toBeGreaterThan(0);
});

test("verify finds nothing in another player's accepted episodes, after any change", async () => {
  const sound = await fullEpisode();
  const assignment = {
    task: lampTask,
    rolloutId: "lamp/test/0#0",
    groupId: "lamp/test/0",
    groupIndex: 0,
    sampleIndex: 0,
    seed: 0,
  };
  const setup = { environment: lamp(), renderer: createCharacterRenderer() };
  const about = { setup, options: {} };
  expect(writtenAs(takeEpisode(sound, assignment, about)).found).toEqual([]);
  let [taken, refused] = [0, 0];
  for (const [what, episode] of changed(sound)) {
    try {
      const { line, found } = writtenAs(takeEpisode(episode, assignment, about));
      expect(found, what).toEqual([]);
      expect(isCounted(line), what).toBe(true);
      taken += 1;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      expect(error.message, what).toContain("is not an episode of this rollout (");
      refused += 1;
    }
  }
  expect(taken).toBeGreaterThan(0);
  expect(refused).toBeGreaterThan(taken);
});

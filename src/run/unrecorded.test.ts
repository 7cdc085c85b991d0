import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRecordedRun } from "../setup/open-replay.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import type { RecordPolicy } from "./read-recording.ts";
import { replayEpisode } from "./replay-episode.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-unrecorded-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** Plays one attempt after the other; stops as the engine is asked for a turn. */
async function play(record: RecordPolicy, stopAt?: string): Promise<readonly string[]> {
  const stop = new AbortController();
  const asked: string[] = [];
  const engine = switchingEngine(({ sessionId }, turn) => {
    asked.push(`${sessionId}:${turn}`);
    if (asked.at(-1) === stopAt) stop.abort();
  });
  await using folder = await openLamps(dir, { record });
  const run = startLamps({ folder, engine, signal: stop.signal, admission: { concurrency: 1 } });
  await takeAll(run);
  return asked;
}

async function replayAll(): Promise<Readonly<Record<string, string>>> {
  const recorded = await openRecordedRun(dir);
  const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
  const verdicts: Record<string, string> = {};
  for (const rolloutId of recorded.rolloutIds) {
    verdicts[rolloutId] = (await replayEpisode((await recorded.read(rolloutId))!, { setup })).type;
  }
  return verdicts;
}

test("a start that records nothing leaves no beginning behind of what it finished", async () => {
  await play("all", "lamp/test/1#0:1");
  expect(await replayAll()).toEqual({
    "lamp/test/0#0": "identical",
    "lamp/test/0#1": "identical",
    "lamp/test/1#0": "unfinished",
  });
  // It goes on in the middle of the attempt, and is stopped in the next one.
  expect(await play("none", "lamp/test/1#1:1")).toEqual([
    "lamp/test/1#0:1",
    "lamp/test/1#1:0",
    "lamp/test/1#1:1",
  ]);
  const before = { "lamp/test/0#0": "identical", "lamp/test/0#1": "identical" };
  expect(await replayAll()).toEqual(before);
  await play("all");
  expect(await replayAll()).toEqual({
    ...before,
    "lamp/test/1#1": "identical",
    "lamp/test/2#0": "identical",
    "lamp/test/2#1": "identical",
  });
});

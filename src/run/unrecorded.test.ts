import { cpSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { openRecordedRun } from "../composition/open-replay.ts";
import type { EpisodeRow } from "./folder/episode-row.ts";
import {
  fiftyLamps,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import type { RecordPolicy } from "./recording/read-recording.ts";
import { replayEpisode } from "./recording/replay-episode.ts";

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

async function replayAll(place = dir): Promise<Readonly<Record<string, string>>> {
  const recorded = await openRecordedRun(place);
  const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
  const verdicts: Record<string, string> = {};
  for (const rolloutId of recorded.rolloutIds) {
    verdicts[rolloutId] = (await replayEpisode((await recorded.read(rolloutId))!, { setup })).type;
  }
  return verdicts;
}

test("a start that records nothing leaves no partial recording of episodes that it finished", async () => {
  await play("all", "lamp/test/1#0:1");
  expect(await replayAll()).toEqual({
    "lamp/test/0#0": "identical",
    "lamp/test/0#1": "identical",
    "lamp/test/1#0": "unfinished",
  });
  // The start resumes in the middle of the attempt, and is stopped in the next one.
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

describe("a start that records nothing, and is killed after the end of an attempt of an earlier one", () => {
  const begun = "lamp/test/0#0";
  let killed = "";
  beforeEach(async () => {
    killed = path.join(dir, "killed");
    const place = path.join(dir, "run");
    const isKept = (file: string): boolean => !file.endsWith("run.lock");
    for (const record of ["all", "none"] as const) {
      const stop = new AbortController();
      const engine = switchingEngine((_, turn) => {
        if (record === "all" && turn === 1) stop.abort();
      });
      const onEpisode = (): void => {
        cpSync(place, killed, { recursive: true, filter: isKept });
        stop.abort();
      };
      await using folder = await openLamps(place, { record });
      const around = { admission: { concurrency: 1 }, engine, onEpisode, signal: stop.signal };
      await takeAll(startLamps({ folder, ...around }));
    }
  });

  test("leaves a partial recording that differs from a damaged one", async () => {
    const stored = await (await openRecordedRun(killed)).read(begun);
    expect(stored!.row).toMatchObject({ attempt: 1, reward: 1 });
    const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
    expect(await replayEpisode(stored!, { setup })).toEqual({
      type: "unrecorded",
      reason: "its recording is of its beginning: a start that records nothing played the rest",
    });
  });

  test.each(["all", "failed", "none"] as const)(
    "leaves none of it when a start with --record %s has ended",
    async (record) => {
      {
        await using folder = await openLamps(killed, { record });
        await takeAll(startLamps({ folder }));
      }
      expect(await replayAll(killed)).not.toHaveProperty(begun);
    },
  );

  test("leaves a partial recording that is resumed if its row is lost", async () => {
    await writeFile(path.join(killed, "episodes.jsonl"), "");
    const asked: string[] = [];
    const engine = switchingEngine(({ sessionId }, turn) => {
      if (sessionId === begun) asked.push(`${sessionId}:${turn}`);
    });
    {
      await using folder = await openLamps(killed);
      await takeAll(startLamps({ folder, engine }));
    }
    expect(asked).toEqual([`${begun}:1`]);
    expect(await replayAll(killed)).toHaveProperty(begun, "identical");
  });
});

describe("an attempt that a start without recording played again before it was killed", () => {
  const grouping = { size: 2, attempts: 1 };
  let killed = "";
  beforeEach(async () => {
    killed = path.join(dir, "killed");
    const place = path.join(dir, "run");
    const failing = switchingEngine((_, turn) =>
      turn === 1 ? new RolloutError("engine/unreachable", "gone") : undefined,
    );
    const isKept = (file: string): boolean => !file.endsWith("run.lock");
    const kill = (): void => cpSync(place, killed, { recursive: true, filter: isKept });
    for (const [record, engine] of [["all", failing] as const, ["none", undefined] as const]) {
      const stop = new AbortController();
      await using folder = await openLamps(place, { record, retryFailed: true });
      const onEpisode = (): void => {
        if (record === "none") kill();
        stop.abort();
      };
      const around = { admission: { concurrency: 1 }, grouping, onEpisode, signal: stop.signal };
      await takeAll(startLamps({ folder, ...around, ...(engine && { engine }) }));
    }
  });

  test("is not compared with the recording of the attempt before", async () => {
    const stored = await (await openRecordedRun(killed)).read("lamp/test/0#0");
    expect([stored!.recorded.begin.attempt, stored!.row]).toMatchObject([
      1,
      { attempt: 2, reward: 1 },
    ]);
    const setup = lampSetup({ environment: fiftyLamps, engine: switchingEngine() });
    for (const scoreAnew of [false, true]) {
      expect(await replayEpisode(stored!, { setup, scoreAnew })).toEqual({
        type: "unrecorded",
        reason:
          "its recording is of attempt 1, and the episode is attempt 2: a start that records nothing played " +
          "that one, or what was recorded of it is lost",
      });
    }
  });

  test("has no recording of the earlier attempt when the next start has ended", async () => {
    {
      await using folder = await openLamps(killed);
      await takeAll(startLamps({ folder, grouping }));
    }
    expect(await replayAll(killed)).toEqual({
      "lamp/test/0#1": "identical",
      "lamp/test/1#0": "identical",
      "lamp/test/1#1": "identical",
      "lamp/test/2#0": "identical",
      "lamp/test/2#1": "identical",
    });
  });
});

test("cannot be forked from an attempt before the finished one", async () => {
  const grouping = { size: 2, branchAt: [1] };
  let failures = 0;
  const failingOnce = switchingEngine((_, turn) =>
    turn === 1 && failures++ === 0 ? new RolloutError("engine/unreachable", "gone") : undefined,
  );
  {
    const stop = new AbortController();
    const onEpisode = (): void => stop.abort();
    const around = { admission: { concurrency: 1 }, grouping, onEpisode, signal: stop.signal };
    await using folder = await openLamps(dir);
    await takeAll(startLamps({ folder, ...around, engine: failingOnce }));
  }
  // The recording of the second attempt is lost.
  const file = path.join(dir, "recording.jsonl");
  const lines = (await readFile(file, "utf8")).split("\n");
  await writeFile(file, lines.filter((line) => !line.includes('"attempt":2')).join("\n"));
  await using folder = await openLamps(dir);
  await takeAll(startLamps({ folder, grouping }));
  const rows = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).trim().split("\n");
  const parted = rows
    .map((line) => JSON.parse(line) as EpisodeRow)
    .filter(({ forkedFrom }) => forkedFrom !== undefined);
  expect(parted.map(({ rolloutId }) => rolloutId).toSorted()).toEqual([
    "lamp/test/1#1",
    "lamp/test/2#1",
  ]);
});

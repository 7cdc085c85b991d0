import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Agent } from "../agent/agent.ts";
import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import type { Environment, World } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import type { Episode } from "../episode/episode.ts";
import { inputsBefore, type Input } from "../episode/inputs/input.ts";
import { defaultLimits, type EpisodeLimits } from "../episode/limits.ts";
import { playEpisode } from "../episode/play-episode.ts";
import { rendererOf } from "../episode/renderer-of.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { exportRun } from "../export/export-run.ts";
import type { ExportTarget } from "../export/exporters.ts";
import { readTableRows } from "../export/read-table-rows.ts";
import { PlaybackStop } from "../outside.ts";
import { Redactor } from "../secrets/redactor.ts";
import { createClock } from "../async/clock.ts";
import { createAdmissionGate } from "./schedule/admission.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { characterIds, createCharacterRenderer } from "../testing/character-renderer.ts";
import { createManualClock, type ManualClock } from "../testing/manual-clock.ts";
import type { Task } from "../task.ts";
import { llmUser } from "../user/llm-user.ts";
import { advantages } from "./schedule/advantages.ts";
import { playHere, type AttemptPlayer } from "./attempt/attempt-player.ts";
import { faultyFiles } from "./faulty-files.fixture.ts";
import { diskFiles, type Files } from "./disk/files.ts";
import { createSpreadFilter, rewardsOf, type EpisodeGroup } from "./schedule/group.ts";
import { lamps, lampSetup } from "./lamp-run.fixture.ts";
import { fakeMachine } from "./machine.fixture.ts";
import type { EpisodeRow } from "./folder/episode-row.ts";
import { replayEpisode } from "./recording/replay-episode.ts";
import type { RunProgress } from "./run-progress.ts";
import { RunFolder, type RunFolderOptions } from "./folder/run-folder.ts";
import { rolloutIdsIn, testManifest } from "./folder/run-folder.fixture.ts";
import { startRun } from "./start-run.ts";
import type { AdmissionGate, StartRunOptions } from "./start-run-options.ts";
import { createCurriculum, createEndlessTasks, createTaskList } from "./schedule/task-source.ts";
import { createPushedTasks } from "./schedule/pushed-tasks.ts";
import { createTaskStream } from "./schedule/streamed-tasks.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-start-run-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

let pid = 1;
async function open(options: Partial<RunFolderOptions> = {}): Promise<RunFolder> {
  pid += 1;
  return await RunFolder.open(dir, testManifest, {
    retryFailed: false,
    ...options,
    lock: { machine: fakeMachine({ pid }) },
  });
}

/** Which turn of its episode a request asks for, by the stop tokens in its prompt. */
function turnOf({ promptIds }: GenerateRequest): number {
  const [stop] = createCharacterRenderer().stopTokenIds;
  const opened = promptIds.filter((id) => id === stop).length;
  // The system message and the user's first line have one each.
  return Math.floor((opened - 2) / 2);
}

/** Switches the lamp on and says goodbye; the answers depend only on the request. */
function lampEngine(
  onRequest: (request: GenerateRequest, turn: number) => unknown = () => undefined,
  version: () => string = () => "1",
): Engine {
  const engine = preparedEngine([]);
  return {
    ...engine,
    async generate(request, options): Promise<Generation> {
      const turn = turnOf(request);
      const special = await onRequest(request, turn);
      if (special instanceof Error) throw special;
      const reply = says(turn === 0 ? switchCall : "Goodbye!");
      const outputIds = reply.outputIds!;
      const piece = { requestId: request.requestId, tokenCount: outputIds.length };
      return await preparedEngine([
        { outputIds, pieces: [{ ...piece, policyVersion: version(), finish: "stop" }] },
      ]).generate(request, options);
    },
  };
}

/** Switches the lamp on twice before it says goodbye. */
function threeTurns(): Engine {
  return {
    ...preparedEngine([]),
    generate: async (request, options) =>
      await preparedEngine([says(turnOf(request) < 2 ? switchCall : "Goodbye!")]).generate(
        request,
        options,
      ),
  };
}

const environment: Environment = { ...lamps(50), repeatable: true };

function setupWith(engine: Engine): StartRunOptions["setup"] {
  return lampSetup({ environment, engine });
}

function start(options: Partial<StartRunOptions> & { readonly engine?: Engine }) {
  const { engine = lampEngine(), ...rest } = options;
  return startRun({
    source: createTaskList(environment, { split: "test", taskIndexes: [0, 1, 2] }),
    setup: setupWith(engine),
    grouping: { size: 2 },
    admission: { concurrency: 4 },
    ...rest,
  });
}

async function all(groups: AsyncIterable<EpisodeGroup>): Promise<readonly EpisodeGroup[]> {
  const found: EpisodeGroup[] = [];
  for await (const group of groups) found.push(group);
  return found.toSorted((one, other) => one.groupIndex - other.groupIndex);
}

/** Returns the policy versions of the trained tokens. */
function sampledVersions(groups: readonly EpisodeGroup[]): readonly string[] {
  const segments = groups.flatMap(({ episodes }) => episodes.flatMap((each) => each.segments));
  const names = segments.flatMap(({ lossMask, policyVersions }) =>
    policyVersions.filter((_, index) => lossMask[index] === 1),
  );
  return [...new Set(names)].toSorted();
}

/** Resolves when the run only waits for a second to pass. */
async function untilWaiting(clock: ManualClock): Promise<void> {
  for (let round = 0; round < 20; round++) await new Promise((next) => setImmediate(next));
  await clock.untilSleeping(1000);
}

const outage = new RolloutError("engine/overloaded", "Cannot sample: 503", { retryable: true });

describe("startRun()", () => {
  test("delivers each complete group, with its attempts in order", async () => {
    const run = start({});
    const groups = await all(run);
    expect(
      groups.map(({ groupId, episodes }) => [groupId, episodes.map(({ rolloutId }) => rolloutId)]),
    ).toEqual(
      [0, 1, 2].map((index) => [
        `lamp/test/${index}`,
        [`lamp/test/${index}#0`, `lamp/test/${index}#1`],
      ]),
    );
    expect(groups.every((group) => rewardsOf(group).every((reward) => reward === 1))).toBe(true);
    const seeds = groups.flatMap(({ episodes }) => episodes.map(({ seed }) => seed));
    expect(seeds).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await run.result).toMatchObject({
      end: "finished",
      progress: { planned: 6, finished: 6, groups: { finished: 3, leftOut: 0 } },
    });
  });

  test("plays a failed attempt again, and only that", async () => {
    const asked: string[] = [];
    const engine = lampEngine(({ requestId }, turn) => {
      if (turn === 0) asked.push(requestId.slice(0, -3));
      return requestId === "lamp/test/1#0:1:1;" ? outage : undefined;
    });
    const groups = await all(start({ engine }));
    expect(groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome))).toEqual(
      new Array<string>(6).fill("completed"),
    );
    expect(asked.toSorted()).toEqual([
      "lamp/test/0#0:1",
      "lamp/test/0#1:1",
      "lamp/test/1#0:1",
      "lamp/test/1#0:2",
      "lamp/test/1#1:1",
      "lamp/test/2#0:1",
      "lamp/test/2#1:1",
    ]);
    expect(groups[1]!.episodes[0]!.attempt).toBe(2);
  });

  test("never scores a failure: advantages compare the others", async () => {
    const engine = lampEngine(({ sessionId }) =>
      sessionId === "lamp/test/1#0" ? outage : undefined,
    );
    const groups = await all(start({ engine, grouping: { size: 3, attempts: 2 } }));
    const rewards = groups.map((group) => rewardsOf(group));
    expect(rewards).toEqual([
      [1, 1, 1],
      [undefined, 1, 1],
      [1, 1, 1],
    ]);
    expect(advantages([undefined, 1, 0], "dr-grpo")).toEqual([undefined, 0.5, -0.5]);
    expect(advantages([undefined, 1, 0], "rloo")).toEqual([undefined, 1, -1]);
    expect(advantages([1, undefined], "grpo")).toEqual([undefined, undefined]);
    const [high] = advantages([1, 0, 0, 1], "grpo");
    expect(high).toBeCloseTo(0.5 / (Math.sqrt(1 / 3) + 1e-6), 12);
  });

  test("leaves out groups that a filter refuses, with the reason", async () => {
    await using folder = await open();
    const run = start({ folder, grouping: { size: 2, keep: createSpreadFilter() } });
    expect(await all(run)).toEqual([]);
    expect(await run.result).toMatchObject({ progress: { groups: { finished: 0, leftOut: 3 } } });
    const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
    expect(events.match(/"group-left-out"/g)).toHaveLength(3);
    expect(events).toContain('"reason":"filtered"');
  });

  test.each([
    [
      "a promise",
      async () => await Promise.resolve(true),
      "the filter returned a promise (a forgotten await?)",
    ],
    ["nothing", () => undefined, "the filter returned nothing (a forgotten return?)"],
    ["a number", () => 3, "the filter returned 3"],
  ])("rejects a filter that returns %s", async (_, keep, returned) => {
    const run = start({
      source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
      grouping: { size: 2, keep: keep as unknown as () => boolean },
    });
    await expect(all(run)).rejects.toThrow(
      new UsageError(
        `Cannot filter group lamp/test/0: ${returned}, expected true, false or the reason to leave it out`,
      ),
    );
  });

  test("names a filter that throws", async () => {
    const keep = (): boolean => {
      throw new TypeError("no such field");
    };
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    await expect(all(start({ source, grouping: { size: 2, keep } }))).rejects.toThrow(
      new UsageError("Cannot filter group lamp/test/0: no such field"),
    );
  });

  test("a rejected promise of a filter ends the run, and not the process", async () => {
    const keep = (() => Promise.reject(new Error("no such table"))) as unknown as () => boolean;
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    await expect(all(start({ source, grouping: { size: 2, keep } }))).rejects.toThrow(
      "Cannot filter group lamp/test/0: the filter returned a promise (a forgotten await?), expected true",
    );
  });

  const away = new TypeError("the database is away");
  const fails = (): never => {
    throw away;
  };
  const failsLater = async (): Promise<never> => {
    await Promise.resolve();
    throw away;
  };
  const oneTask = createTaskList(environment, { split: "test", taskIndexes: [0] });

  test.each<
    [what: string, listener: (fail: () => never) => Partial<StartRunOptions>, name: string]
  >([
    [
      "the source's onGroupEnd()",
      (onGroupEnd) => ({ source: { ...oneTask, onGroupEnd } }),
      "call onGroupEnd of the source of tasks for lamp/test/0",
    ],
    ["onEpisode", (onEpisode) => ({ onEpisode }), "call onEpisode for lamp/test/0#0"],
    ["onProgress", (onProgress) => ({ onProgress }), "call onProgress"],
    [
      "an admission gate",
      (admit) => ({ admission: { concurrency: 1, gate: { admit } } }),
      "ask admission.gate for a place for lamp/test/0#0",
    ],
    [
      "what an admission gate gives",
      (leave) => ({
        admission: { concurrency: 1, gate: { admit: () => Promise.resolve(leave) } },
      }),
      "give the place of lamp/test/0#0 back to admission.gate",
    ],
  ])("names a listener that throws, at once or later: %s", async (_, listener, name) => {
    for (const fail of [fails, failsLater]) {
      const options = { source: oneTask, grouping: { size: 1 }, ...listener(fail as () => never) };
      const expected = new UsageError(`Cannot ${name}: the database is away`, { cause: away });
      await expect(all(start(options))).rejects.toThrow(expected);
    }
  });

  test("waits at its end for async listeners, and throws their rejection", async () => {
    const left = withResolvers();
    const run = start({
      source: { ...oneTask, onGroupEnd: () => left.promise as unknown as void },
      grouping: { size: 1 },
    });
    const groups = run[Symbol.asyncIterator]();
    expect((await groups.next()).value.groupId).toBe("lamp/test/0");
    left.reject(away);
    await expect(run.result).rejects.toThrow(
      "Cannot call onGroupEnd of the source of tasks for lamp/test/0: the database is away",
    );
  });

  test("does not wait for ever for a listener that never ends, and not at all when it is stopped", async () => {
    const time = createManualClock();
    const clock = createClock(time);
    const stop = new AbortController();
    const options = {
      setup: { ...setupWith(lampEngine()), clock },
      source: { ...oneTask, onGroupEnd: async () => await new Promise<void>(() => {}) },
      grouping: { size: 1 },
    };
    const patient = start(options);
    await time.untilSleeping(10_000);
    await time.advance(10_000);
    expect(await patient.result).toMatchObject({ end: "finished" });
    const stopped = start({ ...options, signal: stop.signal });
    await time.untilSleeping(10_000);
    stop.abort(new Error("enough"));
    expect(await stopped.result).toMatchObject({ end: "finished" });
  });

  test("is not a failure if a listener throws the reason of the stop", async () => {
    for (const isLate of [false, true]) {
      const stop = new AbortController();
      const onEpisode = (): void => {
        stop.abort(new Error("enough"));
        if (isLate) return Promise.reject(stop.signal.reason as Error) as unknown as void;
        stop.signal.throwIfAborted();
      };
      const { result } = start({ onEpisode, signal: stop.signal, admission: { concurrency: 1 } });
      expect(await result).toMatchObject({ end: "interrupted" });
    }
  });

  test("starts more attempts than a group needs, and cancels the late ones", async () => {
    const held = withResolvers();
    const engine = lampEngine(async ({ sessionId }) => {
      if (sessionId.endsWith("#1")) await held.promise;
    });
    const source = createTaskList(environment, { split: "test", taskIndexes: [7] });
    const run = start({ engine, source, grouping: { size: 2, started: 3 } });
    const groups = await all(run);
    expect(groups[0]!.episodes.map(({ sampleIndex }) => sampleIndex)).toEqual([0, 2]);
    const { end, progress } = await run.result;
    expect([end, progress.running]).toEqual(["finished", 0]);
    // The number of episodes is unknown: two or three.
    expect(progress).not.toHaveProperty("planned");
    held.resolve();
  });

  test("gives slime the delivered attempts of over-sampled groups", async () => {
    const engine = lampEngine(({ sessionId, requestId }) => {
      if (sessionId === "lamp/test/0#0") return outage;
      // It is never needed.
      return sessionId === "lamp/test/1#1" && requestId.includes(":1:")
        ? new Promise(() => {})
        : undefined;
    });
    await using folder = await open({ format: "slime" });
    const admission = { concurrency: 3 };
    const grouping = { size: 2, started: 4, attempts: 1 };
    const run = start({ engine, folder, grouping, admission });
    const groups = await all(run);
    expect(groups.map(({ episodes }) => episodes.length >= 2)).toEqual([true, true, true]);
    const rows = await readFile(path.join(dir, "samples.slime.jsonl"), "utf8");
    const given = rows.trimEnd().split("\n");
    const scored = groups.flatMap(({ episodes }) =>
      episodes.filter(({ reward }) => reward !== undefined).map(({ rolloutId }) => rolloutId),
    );
    const ids = given.map((line) => (JSON.parse(line) as { session_id: string }).session_id);
    expect(ids).toEqual(scored);
    expect((await run.result).slime).toEqual({ groups: 3, rows: 6 });
  });

  test("completes a group with the attempts that are first in the file, in any order of events", async () => {
    await using folder = await open();
    const writeEvent = folder.writeEvent.bind(folder);
    const rounds = [200];
    vi.spyOn(folder, "writeEvent").mockImplementation(async (event) => {
      const count = event.type === "episode-finished" ? (rounds.pop() ?? 0) : 0;
      for (let round = 0; round < count; round++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await writeEvent(event);
    });
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    const run = start({ folder, source, grouping: { size: 1, started: 2 } });
    const [group] = await all(run);
    const [first] = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(group!.episodes.map(({ rolloutId }) => rolloutId)).toEqual([first]);
  });

  test("keeps failures of groups that are complete without them if failed ones are played again", async () => {
    const failing = lampEngine(({ sessionId }) =>
      sessionId === "lamp/test/0#0" || sessionId.startsWith("lamp/test/1") ? outage : undefined,
    );
    const grouping = { size: 2, started: 3, attempts: 1 };
    const source = createTaskList(environment, { split: "test", taskIndexes: [0, 1] });
    const admission = { concurrency: 1 };
    {
      await using folder = await open();
      await all(start({ engine: failing, source, folder, grouping, admission }));
    }
    const before = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(before.filter((id) => id === "lamp/test/0#0")).toHaveLength(1);
    await using folder = await open({ retryFailed: true });
    const run = start({ engine: lampEngine(), source, folder, grouping, admission });
    await all(run);
    const after = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(after.filter((id) => id.startsWith("lamp/test/0")).toSorted()).toEqual(
      before.filter((id) => id.startsWith("lamp/test/0")).toSorted(),
    );
    expect((await run.result).progress.failures).toEqual({ "engine/overloaded": 1 });
  });

  test("is left with its first group while a late attempt is still coming to its end", async () => {
    const left = withResolvers();
    const player: AttemptPlayer = {
      play: async (assignment, setup, options) => {
        if (assignment.sampleIndex === 0) return await playHere.play(assignment, setup, options);
        const { signal } = options;
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        await left.promise;
        throw signal.reason;
      },
    };
    const admission = { concurrency: 2 };
    const run = start({ player, admission, grouping: { size: 1, started: 2 } });
    const groups = run[Symbol.asyncIterator]();
    expect((await groups.next()).value.groupId).toBe("lamp/test/0");
    const leaving = groups.return!(undefined);
    left.resolve();
    await leaving;
    expect(await run.result).toMatchObject({ end: "interrupted", progress: { running: 0 } });
  });

  test("ends a folder in which an earlier start had no need of all attempts", async () => {
    const options = { admission: { concurrency: 1 }, grouping: { size: 1, started: 2 } };
    {
      await using folder = await open();
      const stop = new AbortController();
      const run = start({ folder, ...options, signal: stop.signal });
      for await (const _group of run) stop.abort();
      expect(await run.result).toMatchObject({ end: "interrupted" });
    }
    await using folder = await open();
    const run = start({ folder, ...options });
    await all(run);
    expect(await run.result).toMatchObject({ end: "finished" });
    const ids = await rolloutIdsIn(dir, "samples.jsonl");
    expect(ids).toEqual(["lamp/test/0#0", "lamp/test/1#0", "lamp/test/2#0"]);
  });

  test("starts no further group while the waiting ones are not taken", async () => {
    const begun = new Set<string>();
    const engine = lampEngine(({ sessionId }) => void begun.add(sessionId.split("#")[0]!));
    const run = start({
      engine,
      source: createEndlessTasks(environment, { split: "test", taskIndexes: [0, 1, 2], seed: 1 }),
      admission: { concurrency: 1, ahead: 2 },
    });
    const groups = run[Symbol.asyncIterator]();
    const first = await groups.next();
    expect(first.done).toBe(false);
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    const settled = begun.size;
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(begun.size).toBe(settled);
    expect(settled).toBeLessThanOrEqual(4);
    await groups.return?.(undefined);
    expect(await run.result).toMatchObject({ end: "interrupted" });
  });

  test("plays without end, each epoch in its own order, and the same on each start", async () => {
    const drawn = async (count: number): Promise<readonly string[]> => {
      const source = createEndlessTasks(environment, {
        split: "test",
        taskIndexes: [0, 1, 2],
        seed: 3,
      });
      const run = start({ source, admission: { concurrency: 1 }, grouping: { size: 1 } });
      const ids: string[] = [];
      for await (const { groupId } of run) {
        ids.push(groupId);
        if (ids.length === count) break;
      }
      return ids;
    };
    const ids = await drawn(9);
    expect(new Set(ids).size).toBe(9);
    const pass = (index: number) => ids.slice(3 * index, 3 * index + 3);
    expect(pass(0).toSorted()).toEqual(["lamp/test/0", "lamp/test/1", "lamp/test/2"]);
    expect(pass(1).toSorted()).toEqual(["lamp/test/0~2", "lamp/test/1~2", "lamp/test/2~2"]);
    expect(pass(2).toSorted()).toEqual(["lamp/test/0~3", "lamp/test/1~3", "lamp/test/2~3"]);
    expect(await drawn(5)).toEqual(ids.slice(0, 5));
  });

  test.each([
    ["a group that was begun", { concurrency: 1, leaves: true }],
    ["a group that was not taken", { concurrency: 4, leaves: false }],
  ])("mixes no attempts at two tasks if the source gives others: %s", async (_, how) => {
    const source = (index: number) =>
      createTaskList(environment, { split: "test", taskIndexes: [index] });
    {
      await using folder = await open();
      const stop = new AbortController();
      const run = start({
        source: source(0),
        folder,
        redeliver: true,
        signal: stop.signal,
        admission: { concurrency: how.concurrency },
        onEpisode: () => how.leaves && stop.abort(),
      });
      await run.result;
    }
    await using folder = await open();
    const run = start({ source: source(1), folder, redeliver: true });
    // Of attempts that are played at the same time any may have ended first.
    await expect(all(run)).rejects.toThrow(
      new RegExp(
        "^Cannot resume group 0: lamp/test/0#[01] is finished in its place, and the source of tasks gives " +
          "lamp/test/1 there now; start with the same tasks in the same order",
      ),
    );
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).not.toContain("lamp/test/1#1");
  });

  test("takes no folder in which a run was started since it was opened", async () => {
    {
      await using folder = await open();
      const run = start({ folder, admission: { concurrency: 1 } });
      for await (const _ of run) void run.interrupt();
      expect(() => start({ folder })).toThrow(
        "another was started in it since it was opened, and would be played once more",
      );
    }
    await using folder = await open();
    await start({ folder }).result;
    const ids = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(ids.length).toBe(6);
    expect(new Set(ids).size).toBe(6);
  });

  test("resumes the groups of an endless source after a stop", async () => {
    const source = () =>
      createEndlessTasks(environment, { split: "test", taskIndexes: [0, 1], seed: 3 });
    const seen: string[] = [];
    for (let round = 0; round < 4; round++) {
      await using folder = await open();
      const run = start({ source: source(), folder, redeliver: true });
      let count = 0;
      for await (const { groupId } of run) {
        seen.push(groupId);
        if (++count === 3) break;
      }
    }
    // The last group that was delivered before a stop may come twice: it was not recorded as taken.
    const distinct = [...new Set(seen)];
    expect(seen.length - distinct.length).toBeLessThanOrEqual(3);
    const rows = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(new Set(rows).size).toBe(rows.length);
    for (const groupId of distinct) expect(rows).toContain(`${groupId}#0`);
  });

  test("delivers a group if a crash prevented the event of its end", async () => {
    const reported: string[] = [];
    const source = () => ({
      ...createTaskList(environment, { split: "test", taskIndexes: [0, 1] }),
      onGroupEnd: ({ groupId }: EpisodeGroup) => void reported.push(groupId),
    });
    {
      await using folder = await open();
      const run = start({ source: source(), folder, redeliver: true });
      await run.result;
    }
    const events = path.join(dir, "events.jsonl");
    const lines = (await readFile(events, "utf8")).split("\n");
    // As a crash between the episode's line and the event leaves it, for one of the two.
    const isOfFirst = (line: string): boolean =>
      line.includes('"group-finished"') && line.includes('"groupIndex":0,');
    expect(lines.filter(isOfFirst).length).toBe(1);
    await writeFile(events, lines.filter((line) => !isOfFirst(line)).join("\n"));
    reported.length = 0;
    for (const expected of [["lamp/test/0", "lamp/test/1"], []]) {
      await using folder = await open();
      const run = start({ source: source(), folder, redeliver: true });
      expect((await all(run)).map(({ groupId }) => groupId)).toEqual(expected);
    }
    expect(reported).toEqual(["lamp/test/0"]);
  });

  test("does not deliver again an attempt that ended when its group was already complete", async () => {
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
    {
      await using folder = await open();
      const late = withResolvers();
      const writeEpisode = folder.writeEpisode.bind(folder);
      // The other attempt has ended as well while the first is on its way to the disk.
      let count = 0;
      vi.spyOn(folder, "writeEpisode").mockImplementation(async (episode) => {
        const hash = await writeEpisode(episode);
        if (++count === 2) late.resolve();
        await late.promise;
        return hash;
      });
      const run = start({ source: source(), folder, grouping: { size: 1, started: 2 } });
      expect((await all(run)).map(({ episodes }) => episodes.length)).toEqual([1]);
    }
    await using folder = await open();
    expect(folder.finished).toHaveLength(2);
    const again = start({
      source: source(),
      folder,
      redeliver: true,
      grouping: { size: 1, started: 2 },
    });
    expect((await all(again)).map(({ episodes }) => episodes.length)).toEqual([1]);
  });

  describe("with failed attempts that are played again", () => {
    const isLost = ({ sessionId }: GenerateRequest): boolean => sessionId.endsWith("#1");
    const reported: string[] = [];
    const source = () => ({
      ...createTaskList(environment, { split: "test", taskIndexes: [0, 1, 2] }),
      onGroupEnd: ({ groupId }: EpisodeGroup) => void reported.push(groupId),
    });
    beforeEach(() => {
      reported.length = 0;
    });

    /** Plays on; returns the scored attempts of the delivered groups. */
    async function playOn(
      retryFailed: boolean,
      { mayTake = Infinity, ...options }: Parameters<typeof start>[0] & { mayTake?: number } = {},
    ) {
      await using folder = await open({ retryFailed });
      const about = { source: source(), folder, redeliver: true, admission: { concurrency: 1 } };
      const run = start({ ...about, ...options });
      const seen: [string, readonly (number | undefined)[]][] = [];
      for await (const group of run) {
        seen.push([group.groupId, rewardsOf(group)]);
        if (seen.length > mayTake) break;
      }
      return seen;
    }

    const inOrder = (seen: Awaited<ReturnType<typeof playOn>>) =>
      seen.toSorted(([one], [other]) => (one < other ? -1 : 1));

    test("delivers no group that was taken, and completes the others", async () => {
      const engine = lampEngine((request) => (isLost(request) ? outage : undefined));
      const grouping = { size: 2, attempts: 1 };
      expect(await playOn(false, { engine, grouping, mayTake: 1 })).toEqual([
        ["lamp/test/0", [1, undefined]],
        ["lamp/test/1", [1, undefined]],
      ]);
      reported.length = 0;
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const seen = await playOn(true);
      expect(inOrder(seen)).toEqual([
        ["lamp/test/1", [1, 1]],
        ["lamp/test/2", [1, 1]],
      ]);
      // Another source might give no task before the first group has ended.
      expect(warned).toHaveBeenCalledExactlyOnceWith(
        expect.stringContaining("asked once more for groups that were taken (1)"),
      );
      warned.mockRestore();
      expect(reported.toSorted()).toEqual(["lamp/test/1", "lamp/test/2"]);
      const rows = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
      expect(rows.match(/"outcome":"completed"/g)).toHaveLength(6);
      expect(await playOn(true)).toEqual([]);
    });

    test("decides again about a group that was left out, also after a crash before that is recorded", async () => {
      const engine = lampEngine((request) => (isLost(request) ? outage : undefined));
      const keep = (group: EpisodeGroup) => !rewardsOf(group).includes(undefined) || "incomplete";
      const grouping = { size: 2, attempts: 1, keep };
      expect(await playOn(false, { engine, grouping })).toEqual([]);
      const [seen] = await playOn(true, { grouping, mayTake: 0 });
      expect(seen).toEqual(["lamp/test/0", [1, 1]]);
      const events = path.join(dir, "events.jsonl");
      const lines = (await readFile(events, "utf8")).split("\n");
      await writeFile(
        events,
        lines.filter((line) => !line.includes('"group-finished"')).join("\n"),
      );
      const rest = await playOn(true, { grouping });
      expect(inOrder(rest)).toEqual([0, 1, 2].map((index) => [`lamp/test/${index}`, [1, 1]]));
    });
  });

  test("writes the same rows after a stop by its signal at any call of the file system", async () => {
    const plain = faultyFiles(() => undefined);
    let callCount = 0;
    const play = async (at: string, stopAt: number): Promise<string> => {
      for (let isFirst = true; ; isFirst = false) {
        const stop = new AbortController();
        callCount = 0;
        let isOpen = false;
        const files = faultyFiles(() => {
          if (isOpen && isFirst && (callCount += 1) === stopAt) stop.abort(new Error("stopped"));
          return undefined;
        });
        pid += 1;
        const lock = { machine: fakeMachine({ pid }) };
        await using folder = await RunFolder.open(path.join(dir, at), testManifest, {
          retryFailed: false,
          lock,
          files: isFirst ? files : plain,
        });
        isOpen = true;
        const { end } = await start({
          source: createTaskList(environment, { split: "test", taskIndexes: [0, 1] }),
          folder,
          redeliver: true,
          signal: stop.signal,
          admission: { concurrency: 2 },
        }).result;
        if (end === "finished") break;
        expect([isFirst, end]).toEqual([true, "interrupted"]);
      }
      return await readFile(path.join(dir, at, "samples.jsonl"), "utf8");
    };
    const undisturbed = await play("undisturbed", Infinity);
    const calls = callCount;
    expect(calls).toBeGreaterThan(20);
    // Each one takes long on a slow disk: those in between differ little.
    for (let stopAt = 1; stopAt <= calls; stopAt += 6) {
      expect(await play(String(stopAt), stopAt), `call ${stopAt}`).toBe(undisturbed);
    }
  });

  test("two runs at once, each in its own folder, play like one alone", async () => {
    const play = async (at: string, indexes: readonly number[]): Promise<readonly string[]> => {
      pid += 1;
      const lock = { machine: fakeMachine({ pid }) };
      const where = path.join(dir, at);
      await using folder = await RunFolder.open(where, testManifest, { retryFailed: false, lock });
      const run = start({
        source: createTaskList(environment, { split: "test", taskIndexes: indexes }),
        setup,
        folder,
        grouping: { size: 2, branchAt: [1] },
      });
      expect((await run.result).end).toBe("finished");
      const names = ["samples.jsonl", "summary.json"];
      return await Promise.all(names.map((name) => readFile(path.join(where, name), "utf8")));
    };
    // Tasks, and so ids, are shared, and so is all that plays them.
    const setup = setupWith(lampEngine());
    const alone = [await play("a", [0, 1, 2]), await play("b", [1, 2, 3])];
    const together = await Promise.all([play("c", [0, 1, 2]), play("d", [1, 2, 3])]);
    expect(together).toEqual(alone);
  });

  test("takes and records pushed tasks, and resumes the started ones", async () => {
    const task = (index: number) => ({ task: environment.task("test", index) });
    const never = new Promise<never>(() => {});
    {
      await using folder = await open();
      const source = createPushedTasks();
      source.push(task(3), task(4));
      const stop = new AbortController();
      const engine = lampEngine(async ({ sessionId }, turn) => {
        if (!sessionId.startsWith("lamp/test/4") || turn === 0) return;
        stop.abort(new Error("stopped"));
        await never;
      });
      const run = start({
        engine,
        source,
        folder,
        signal: stop.signal,
        admission: { concurrency: 1 },
      });
      expect((await all(run)).map(({ groupId }) => groupId)).toEqual(["lamp/test/3"]);
    }
    await using folder = await open();
    const source = createPushedTasks();
    source.push(task(5));
    source.end();
    const turns: string[] = [];
    const engine = lampEngine(({ sessionId }, turn) => void turns.push(`${sessionId}:${turn}`));
    const run = start({ engine, source, folder });
    expect((await all(run)).map(({ groupId }) => groupId)).toEqual(["lamp/test/4", "lamp/test/5"]);
    expect(await run.result).toMatchObject({ end: "finished" });
    // The turn that was recorded is not sampled again.
    expect(turns).not.toContain("lamp/test/4#0:0");
    expect(turns).toContain("lamp/test/4#0:1");
  });

  test("resumes a task with data that is not JSON unchanged, or does not start it", async () => {
    const seen: unknown[] = [];
    const lit = new Set(["kitchen"]);
    const withSets: Environment = {
      ...environment,
      task: (split, index) => ({ ...environment.task(split, index), data: { lit } }),
      async open(task, options) {
        seen.push((task.data as { lit: unknown }).lit);
        return await environment.open(task, options);
      },
    };
    const play = async (stopsAt: number, task?: Task) => {
      await using folder = await open();
      const stop = new AbortController();
      const given = task ?? withSets.task("test", 3);
      const engine = lampEngine((_, turn) => void (turn === stopsAt && stop.abort()));
      const run = start({
        source: createTaskStream(folder.finished.length > 0 || stopsAt > 1 ? [] : [given]),
        setup: lampSetup({ environment: withSets, engine }),
        folder,
        signal: stop.signal,
        admission: { concurrency: 1 },
      });
      return await run.result;
    };
    await expect(play(0, { ...withSets.task("test", 3), id: "mine" })).rejects.toThrow(
      "Cannot start mine: it has what JSON cannot say, such as a function, a Map or a Date, and lamp does " +
        "not draw the same task",
    );
    await play(1);
    expect((await play(9)).progress.finished).toBe(2);
    expect(seen.length).toBeGreaterThan(1);
    for (const each of seen) expect(each).toBe(lit);
  });

  test("does not start a task that differs from the one that the environment draws under its id", async () => {
    const isEven = (count: number): boolean => count % 2 === 0;
    const withMaps: Environment = {
      ...environment,
      // Each time another Map, and another function of the same text.
      task: (split, index) => ({
        ...environment.task(split, index),
        data: { lit: new Map([["kitchen", { watts: 40 }]]), isFine: (x: number) => isEven(x) },
      }),
    };
    const own = withMaps.task("test", 3);
    const begin = async (task: Task) => {
      await using folder = await open();
      const run = start({
        source: createTaskStream([task]),
        setup: lampSetup({ environment: withMaps, engine: lampEngine() }),
        folder,
      });
      return (await run.result).end;
    };
    for (const other of [
      { ...own, instruction: "Turn the lamp on, and be quick." },
      { ...own, data: { ...(own.data as object), lit: new Map([["kitchen", { watts: 60 }]]) } },
      { ...own, data: { ...(own.data as object), level: 2 } },
      { ...own, data: { ...(own.data as object), isFine: () => true } },
    ]) {
      await expect(begin(other)).rejects.toThrow(
        "Cannot start lamp/test/3: it has what JSON cannot say, such as a function, a Map or a Date",
      );
      await rm(dir, { recursive: true });
    }
    expect(await begin(own)).toBe("finished");
  });

  test("plays no task of a start with other settings that sampled nothing", async () => {
    const first = createPushedTasks();
    first.push({ task: environment.task("test", 5), groupId: "other" });
    {
      await using folder = await open();
      const asked = withResolvers();
      const engine = lampEngine(() => {
        asked.resolve();
        return new RolloutError("engine/unreachable", "Cannot reach it");
      });
      const stop = new AbortController();
      const { signal } = stop;
      const run = start({ engine, source: first, folder, signal, admission: { concurrency: 1 } });
      await asked.promise;
      stop.abort();
      await run.result;
    }
    await rm(path.join(dir, "recording.jsonl"), { force: true });
    await rm(path.join(dir, "episodes.jsonl"));
    const configuration = { ...testManifest.configuration, temperature: 0 };
    pid += 1;
    await using folder = await RunFolder.open(
      dir,
      { ...testManifest, configuration },
      { retryFailed: false, lock: { machine: fakeMachine({ pid }) } },
    );
    const second = createPushedTasks();
    second.push({ task: environment.task("test", 6), groupId: "one" });
    second.end();
    const groups = await all(start({ source: second, folder, grouping: { size: 1 } }));
    expect(groups.map(({ groupId, groupIndex }) => [groupId, groupIndex])).toEqual([["one", 0]]);
  });

  test("takes no pushed task for a group of an earlier start that it does not know any more", async () => {
    const first = createPushedTasks();
    first.push({ task: environment.task("test", 5), groupId: "one" });
    first.end();
    const about = { grouping: { size: 1 }, redeliver: true };
    {
      await using folder = await open();
      await start({ source: first, folder, ...about }).result;
    }
    const events = path.join(dir, "events.jsonl");
    const lines = (await readFile(events, "utf8")).split("\n");
    await writeFile(events, lines.filter((line) => !line.includes('"group-begun"')).join("\n"));
    const second = createPushedTasks();
    second.push({ task: environment.task("test", 6), groupId: "two" });
    second.end();
    await using folder = await open();
    const groups = await all(start({ source: second, folder, ...about }));
    // The environment's task replaces the recorded one.
    expect(groups.map(({ groupId, task }) => [groupId, task.index])).toEqual([
      ["one", 5],
      ["two", 6],
    ]);
  });

  describe("with branches", () => {
    const grouping = { size: 3, branchAt: [1] };
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0, 1] });

    test("trains shared turns in the first attempt's row alone", async () => {
      const turns: string[] = [];
      const engine = lampEngine(({ sessionId }, turn) => void turns.push(`${sessionId}:${turn}`));
      const [group] = await all(start({ engine, source: source(), grouping }));
      const [trunk, ...branches] = group!.episodes;
      expect(trunk!.forkedFrom).toBe(undefined);
      expect(branches.length).toBe(2);
      for (const { forkedFrom, segments, reward, turns: played } of branches) {
        expect(forkedFrom).toEqual({ rolloutId: "lamp/test/0#0", turnIndex: 1 });
        expect([reward, played.length]).toEqual([1, 2]);
        const [segment] = segments;
        const trained = segment!.lossMask.filter((bit) => bit === 1).length;
        expect(trained).toBe(characterIds("Goodbye!").length);
        expect(segment!.tokenIds).toEqual(trunk!.segments[0]!.tokenIds);
      }
      expect(turns.filter((turn) => turn.endsWith("#1:0"))).toEqual([]);
      expect(turns.toSorted()).toEqual(
        ["0#0:0", "0#0:1", "0#1:1", "0#2:1", "1#0:0", "1#0:1", "1#1:1", "1#2:1"].map(
          (place) => `lamp/test/${place}`,
        ),
      );
    });

    test("shared turns are counted and paid for once, in a later start as well", async () => {
      let askedCount = 0;
      const user = llmUser({
        model: {
          name: "clerk",
          complete: async ({ messages }) => {
            askedCount += 1;
            const said = messages.filter(({ role }) => role === "assistant").length;
            return {
              text: said >= 3 ? "###STOP###" : "Go on.",
              inputTokenCount: 100,
              outputTokenCount: 10,
              costUsd: 1,
              finishReason: "stop",
            };
          },
        },
      });
      let turnCount = 0;
      const stop = createCharacterRenderer().stopTokenIds[0];
      const engine: Engine = {
        ...preparedEngine([]),
        async generate(request, options) {
          turnCount += 1;
          // A malformed call, a call, and then words: the system message and the first line have stops, too.
          const stops = request.promptIds.filter((id) => id === stop).length;
          const said = ["<tool_call>\n{\n</tool_call>", switchCall][(stops - 2) / 2] ?? "Hm?";
          return await preparedEngine([says(said)]).generate(request, options);
        },
      };
      const options = {
        setup: { ...setupWith(engine), user },
        source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
        grouping: { size: 3, branchAt: [3] },
      };
      const ended: RunProgress[] = [];
      for (const _start of ["first", "second"]) {
        await using folder = await open();
        const run = start({ ...options, folder });
        await all(run);
        ended.push((await run.result).progress);
      }
      expect([askedCount, turnCount]).toEqual([4 + 2 * 2, 5 + 2 * 2]);
      for (const progress of ended) {
        expect(progress).toMatchObject({
          finished: 3,
          turnCount,
          toolCallCount: 1,
          formatErrorCount: 1,
          userUsage: { callCount: 8, inputTokenCount: 800, outputTokenCount: 80, costUsd: 8 },
        });
      }
      const lines = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).trim().split("\n");
      const rows = lines.map((line) => JSON.parse(line) as EpisodeRow);
      for (const { forkedFrom, shared, counts, userUsage } of rows) {
        expect(counts).toMatchObject({ turnCount: 5, toolCallCount: 1, formatErrorCount: 1 });
        expect(userUsage).toMatchObject({ callCount: 4, costUsd: 4 });
        if (forkedFrom === undefined) expect(shared).toBeUndefined();
        else {
          expect(shared).toEqual({
            turnCount: 3,
            toolCallCount: 1,
            formatErrorCount: 1,
            userUsage: { callCount: 2, inputTokenCount: 200, outputTokenCount: 20, costUsd: 2 },
          });
        }
      }
      const summary = JSON.parse(
        await readFile(path.join(dir, "summary.json"), "utf8"),
      ) as RunProgress;
      expect(summary.userUsage).toEqual(ended[0]!.userUsage);
      const { violations } = await verifyRun(dir);
      expect(violations.filter(({ file }) => file !== "run.json")).toEqual([]);
    });

    test.each<[what: string, fail: Partial<Record<"open" | "step", true>>]>([
      ["no world", { open: true }],
      ["no answer to a turn before its own", { step: true }],
    ])("does not train an attempt that finds %s", async (_, fails) => {
      const outage = new RolloutError("environment/exception", "The bulb is broken");
      let openCount = 0;
      const broken: Environment = {
        ...environment,
        async open(task, options) {
          openCount += 1;
          if (openCount > 1 && fails.open) throw outage;
          const world = await environment.open(task, options);
          if (openCount > 1 && fails.step) world.step = () => Promise.reject(outage);
          return world;
        },
      };
      await using folder = await open();
      const [group] = await all(
        start({
          setup: lampSetup({ environment: broken, engine: lampEngine() }),
          source: createTaskList(broken, { split: "test", taskIndexes: [0] }),
          folder,
          grouping: { size: 2, branchAt: [1], attempts: 1 },
        }),
      );
      const [trunk, branch] = group!.episodes;
      expect([trunk!.outcome, branch!.outcome]).toEqual(["completed", "failed"]);
      expect(branch!.segments).toEqual([]);
      expect(branch!.counts).toMatchObject({ sampledTokenCount: 0, tokenCount: 0 });
      const { violations } = await verifyRun(dir);
      expect(violations.filter(({ file }) => /episodes|samples/.test(file))).toEqual([]);
    });

    test("fails alone if a world that claims to be repeatable behaves differently", async () => {
      let stepCount = 0;
      const odd: Environment = {
        ...environment,
        async open(task, options) {
          const world = await environment.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            const answer = await step(action, call);
            return { ...answer, observation: `${answer.observation} ${stepCount++}` };
          };
          return world;
        },
      };
      const [group] = await all(
        start({
          setup: lampSetup({ environment: odd, engine: lampEngine() }),
          source: createTaskList(odd, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [1], attempts: 1 },
        }),
      );
      const [trunk, branch] = group!.episodes;
      expect(trunk!.outcome).toBe("completed");
      expect(branch).toMatchObject({
        outcome: "failed",
        failure: { code: "environment/not-repeatable" },
        segments: [],
      });
      expect(branch!.failure?.message).toContain("step switch brings another answer");
    });

    test("is not a damaged recording to a replay if it failed before its own first turn", async () => {
      const { agent, ...setup } = setupWith(lampEngine());
      let openCount = 0;
      const odd: typeof agent = {
        ...agent,
        open: (opening) =>
          agent.open({ ...opening, policyText: `${opening.policyText} It is day ${openCount++}.` }),
      };
      {
        await using folder = await open();
        await start({
          setup: { ...setup, agent: odd },
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [1], attempts: 1 },
          folder,
        }).result;
      }
      await using folder = await open();
      const lines = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).split("\n");
      const row = JSON.parse(lines[1]!) as EpisodeRow;
      const recorded = await folder.recordings.read("lamp/test/0#1");
      const stored = { recorded: recorded!, row, samples: [] };
      openCount = 0;
      expect(await replayEpisode(stored, { setup: { ...setup, agent: odd } })).toEqual({
        type: "diverged",
        reason:
          "it failed before turn 1, with which it was to branch from lamp/test/0#0 (agent/not-repeatable): " +
          "nothing of its own is recorded that could be played again",
      });
    });

    test("fails alone if the agent opens its conversation differently", async () => {
      let openCount = 0;
      const setup = setupWith(lampEngine());
      const { agent } = setup;
      const odd: typeof agent = {
        ...agent,
        open: (start) =>
          agent.open({ ...start, policyText: `${start.policyText} It is day ${openCount++}.` }),
      };
      const [group] = await all(
        start({
          setup: { ...setup, agent: odd },
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [1], attempts: 1 },
        }),
      );
      const [trunk, branch] = group!.episodes;
      expect(trunk!.outcome).toBe("completed");
      expect(branch).toMatchObject({
        outcome: "failed",
        failure: { party: "agent", code: "agent/not-repeatable" },
        segments: [],
      });
      expect(branch!.failure?.message).toMatch(
        /^Cannot part lamp\/test\/0#1 from lamp\/test\/0#0 with turn 1: the policy is asked with other ids/,
      );
    });

    test.each<[what: string, limits: Partial<EpisodeLimits>, code: string]>([
      ["its agent's format errors", { maxFormatErrors: 1 }, "agent/not-repeatable"],
      // As after a restart of the engine with less room.
      ["what its engine has room for", { maxContextTokens: 60 }, "internal/playback"],
    ])("fails alone if it meets a limit before its turn: %s", async (_, fewer, code) => {
      const setup = setupWith(lampEngine());
      const { agent } = setup;
      let readCount = 0;
      const odd: Agent = {
        ...agent,
        read: (turn) => {
          const reading = agent.read(turn);
          const [called] = reading.intents;
          if (turn.turnIndex > 0 || called === undefined || fewer.maxFormatErrors === undefined) {
            return reading;
          }
          const about = { name: "switch", callId: called.callId, observation: "No." };
          const status = readCount++ === 0 ? "extra-call" : "invalid-json";
          return { ...reading, intents: [{ type: "refuse", status, ...about }] };
        },
      };
      const player: AttemptPlayer = {
        play: async (assignment, given, options) => {
          const limits =
            assignment.sampleIndex === 0 ? given.limits : { ...given.limits, ...fewer };
          return await playHere.play(assignment, { ...given, limits }, options);
        },
      };
      const [group] = await all(
        start({
          setup: { ...setup, agent: odd },
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [1], attempts: 1 },
          player,
        }),
      );
      const [trunk, branch] = group!.episodes;
      expect(trunk!.outcome).toBe("completed");
      expect(branch).toMatchObject({ outcome: "failed", failure: { code }, segments: [] });
    });

    test("receives external results unchanged, even if the first attempt's world changed them", async () => {
      const loaded: Environment = {
        ...environment,
        async open(task, options) {
          const state = await options.outside!("load", () => ({ lamps: [{ isOn: false }] }));
          const world = await environment.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            const answer = await step(action, call);
            if (action.type === "call") state.lamps[0]!.isOn = true;
            return answer;
          };
          world.score = async () => ({ reward: state.lamps[0]!.isOn ? 1 : 0, details: {} });
          return world;
        },
      };
      const engine = lampEngine();
      // The branch at the first turn leaves the lamp alone.
      const idle: Engine = {
        ...engine,
        generate: async (request, options) =>
          request.sessionId.endsWith("#1")
            ? await preparedEngine([says("Goodbye!")]).generate(request, options)
            : await engine.generate(request, options),
      };
      const [group] = await all(
        start({
          setup: lampSetup({ environment: loaded, engine: idle }),
          source: createTaskList(loaded, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [0] },
        }),
      );
      expect(group!.episodes.map(({ reward }) => reward)).toEqual([1, 0]);
    });

    test.each<
      [what: string, code: string, change: (agent: Agent, isFirst: () => boolean) => Agent]
    >([
      [
        "shows its answers otherwise",
        "agent/not-repeatable",
        (agent, isFirst) => ({
          ...agent,
          observe: (observed) => {
            const [message, ...rest] = agent.observe(observed);
            return isFirst() ? [message!, ...rest] : [{ ...message!, content: "off" }, ...rest];
          },
        }),
      ],
      [
        "shows the last of its answers otherwise",
        "agent/not-repeatable",
        (agent, isFirst) => {
          let count = 0;
          return {
            ...agent,
            observe: (observed) => {
              const [message, ...rest] = agent.observe(observed);
              const isSame = isFirst() || count++ === 0;
              return isSame ? [message!, ...rest] : [{ ...message!, content: "off" }, ...rest];
            },
          };
        },
      ],
      [
        "reads its turns otherwise",
        "agent/not-repeatable",
        (agent, isFirst) => ({
          ...agent,
          read: (turn) => {
            const reading = agent.read(turn);
            if (isFirst()) return reading;
            const action = { type: "say", content: "Hm?" } as const;
            return { ...reading, intents: [{ type: "act", callId: "c", action }] };
          },
        }),
      ],
      [
        "cannot show its answers any more",
        "agent/exception",
        (agent, isFirst) => ({
          ...agent,
          observe: (observed) => {
            if (!isFirst()) throw new Error("there is nothing to see");
            return agent.observe(observed);
          },
        }),
      ],
    ])("fails alone if its agent %s", async (_, code, change) => {
      let openCount = 0;
      const { agent, ...setup } = lampSetup({ environment, engine: threeTurns() });
      const odd = change(agent, () => openCount === 1);
      const [group] = await all(
        start({
          setup: {
            ...setup,
            agent: { ...odd, open: (given) => (openCount++, odd.open(given)) },
          },
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [2], attempts: 1 },
        }),
      );
      const [trunk, branch] = group!.episodes;
      expect(trunk).toMatchObject({ outcome: "completed" });
      expect(trunk!.turns).toHaveLength(3);
      expect(branch).toMatchObject({ outcome: "failed", failure: { code }, segments: [] });
      expect(branch!.counts.sampledTokenCount).toBe(0);
    });

    test("fails alone, and is played again, if another process does not get the shared turns", async () => {
      let lost = 0;
      const player: AttemptPlayer = {
        play: async (assignment, setup, options) => {
          if (assignment.forkedFrom === undefined || lost++ > 0) {
            return await playHere.play(assignment, setup, options);
          }
          throw new PlaybackStop("what is recorded of it came damaged");
        },
      };
      const events: unknown[] = [];
      await using folder = await open();
      vi.spyOn(folder, "writeEvent").mockImplementation(async (event) => void events.push(event));
      const [group] = await all(
        start({
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, branchAt: [1], attempts: 2 },
          folder,
          player,
        }),
      );
      expect(group!.episodes.map(({ outcome }) => outcome)).toEqual(["completed", "completed"]);
      expect(events).toContainEqual(
        expect.objectContaining({
          type: "attempt-failed",
          rolloutId: "lamp/test/0#1",
          failure: {
            party: "internal",
            code: "internal/playback",
            message:
              "Cannot part lamp/test/0#1 from lamp/test/0#0 with turn 1: what is recorded of it came damaged",
          },
        }),
      );
    });

    test("is refused to an agent that keeps its conversations itself", async () => {
      const task = environment.task("test", 0);
      const fork = {
        place: { rolloutId: "lamp/test/0#0", turnIndex: 0 },
        inputs: { inputs: [], times: [] },
        seed: 0,
      };
      const run = start({
        setup: { ...setupWith(lampEngine()), play: () => Promise.reject(new Error("not asked")) },
        source: { length: 1, repeatable: true, at: () => ({ task, groupId: "fork", fork }) },
      });
      await expect(run.result).rejects.toThrow(
        "Cannot part fork#0 from lamp/test/0#0: the agent tool-calling keeps its conversations itself, " +
          "and nothing brings it back to a turn",
      );
    });

    test("branches at the last turn if there are fewer, and uses the turns in rotation", async () => {
      const places = { size: 4, branchAt: [0, 7] };
      const [group] = await all(start({ source: source(), grouping: places }));
      expect(group!.episodes.map(({ forkedFrom }) => forkedFrom?.turnIndex)).toEqual([
        undefined,
        0,
        1,
        0,
      ]);
    });

    test("writes the same rows after a stop at any policy call", async () => {
      const play = async (stopAt: number): Promise<string> => {
        dir = await mkdtemp(path.join(tmpdir(), "turnwright-branches-"));
        for (let round = 0; ; round++) {
          await using folder = await open();
          const stop = new AbortController();
          let calls = 0;
          const engine = lampEngine(async () => {
            calls += 1;
            if (calls !== stopAt || round > 0) return;
            stop.abort(new Error("stopped"));
            await new Promise<never>(() => {});
          });
          const { signal } = stop;
          const admission = { concurrency: 2 };
          const options = { engine, source: source(), folder, grouping, signal, admission };
          const { end } = await start(options).result;
          if (end === "finished") break;
        }
        const rows = await readFile(path.join(dir, "samples.jsonl"), "utf8");
        await rm(dir, { recursive: true });
        return rows;
      };
      const undisturbed = await play(Infinity);
      expect(undisturbed.split("\n").length).toBe(7);
      for (let stopAt = 1; stopAt <= 8; stopAt++) expect(await play(stopAt)).toBe(undisturbed);
      dir = await mkdtemp(path.join(tmpdir(), "turnwright-start-run-"));
    });

    test("restores a first attempt with a lost row, as the others know it", async () => {
      const rows = path.join(dir, "samples.jsonl");
      {
        await using folder = await open();
        await start({ source: source(), folder, grouping }).result;
      }
      const whole = await readFile(rows, "utf8");
      const isTrunk = (line: string): boolean => line.includes('"rolloutId":"lamp/test/0#0"');
      const left = whole
        .split("\n")
        .filter((line) => !isTrunk(line) || line.includes("forkedFrom"));
      expect(left).toHaveLength(6);
      await writeFile(rows, left.join("\n"));
      const asked: string[] = [];
      const engine = lampEngine(({ requestId }) => void asked.push(requestId));
      await using folder = await open();
      const { end } = await start({ engine, source: source(), folder, grouping }).result;
      expect([end, asked]).toEqual(["finished", []]);
      expect(await readFile(rows, "utf8")).toBe(whole);
    });

    test.each([
      ["is lost", (lines: string[], at: number) => lines.splice(at, 1)],
      [
        "is damaged",
        (lines: string[], at: number) => (lines[at] = lines[at]!.replace("ids", "idz")),
      ],
    ])("resumes no branch with shared turns that %s", async (_, damage) => {
      const file = path.join(dir, "recording.jsonl");
      const options = { source: source(), grouping, admission: { concurrency: 1 } };
      {
        await using folder = await open();
        const stop = new AbortController();
        const engine = lampEngine(async ({ sessionId }) => {
          if (sessionId !== "lamp/test/0#1") return;
          stop.abort(new Error("stopped"));
          await new Promise<never>(() => {});
        });
        await start({ ...options, engine, folder, signal: stop.signal }).result;
      }
      const lines = (await readFile(file, "utf8")).split("\n");
      const isBeginning = (line: string): boolean =>
        line.startsWith('{"recording":1,"type":"inputs","rolloutId":"lamp/test/0#1"');
      damage(lines, lines.findIndex(isBeginning));
      await writeFile(file, lines.join("\n"));
      const asked: string[] = [];
      const engine = lampEngine(({ requestId }) => void asked.push(requestId));
      await using folder = await open();
      const { end } = await start({ ...options, engine, folder }).result;
      expect(end).toBe("finished");
      expect(asked[0]).toBe("lamp/test/0#1:2:1;");
      const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
      expect(events).toContain(
        '"message":"the recording ends before turn 1, the first own turn of the fork"',
      );
    });

    test("fails alone if its agent behaves differently in another start right before the branch", async () => {
      const lone = { source: createTaskList(environment, { split: "test", taskIndexes: [0] }) };
      const options = { ...lone, grouping: { ...grouping, attempts: 1 } };
      {
        await using folder = await open();
        const stop = new AbortController();
        const engine = lampEngine(async ({ sessionId }) => {
          if (sessionId !== "lamp/test/0#1") return;
          stop.abort(new Error("stopped"));
          await new Promise<never>(() => {});
        });
        await start({ ...options, engine, folder, signal: stop.signal }).result;
      }
      await using folder = await open();
      const { agent, ...setup } = setupWith(lampEngine());
      const odd: Agent = {
        ...agent,
        observe: (observed) => agent.observe(observed.map((each) => ({ ...each, text: "off" }))),
      };
      const [group] = await all(start({ ...options, setup: { ...setup, agent: odd }, folder }));
      expect(group!.episodes[1]).toMatchObject({
        forkedFrom: { turnIndex: 1 },
        failure: { code: "agent/not-repeatable" },
        segments: [],
      });
    });

    test("resumes an attempt without a branch although the first one was played again", async () => {
      const once = { ...grouping, attempts: 1 };
      const lone = { source: createTaskList(environment, { split: "test", taskIndexes: [0] }) };
      const options = { ...lone, grouping: once, admission: { concurrency: 1 } };
      {
        await using folder = await open();
        const stop = new AbortController();
        const engine = lampEngine(async ({ sessionId }, turn) => {
          if (sessionId === "lamp/test/0#0") return outage;
          if (turn === 0) return undefined;
          stop.abort(new Error("stopped"));
          return await new Promise<never>(() => {});
        });
        await start({ ...options, engine, folder, signal: stop.signal }).result;
      }
      const asked: string[] = [];
      const engine = lampEngine(({ requestId }) => void asked.push(requestId));
      await using folder = await open({ retryFailed: true });
      const [group] = await all(start({ ...options, engine, folder }));
      expect(group!.episodes.map(({ outcome }) => outcome)).toEqual(
        group!.episodes.map(() => "completed"),
      );
      expect(group!.episodes[1]!.forkedFrom).toBeUndefined();
      // Its first turn was on the disk.
      expect(asked.filter((id) => id.startsWith("lamp/test/0#1"))).toEqual([
        "lamp/test/0#1:1.2:1;",
      ]);
      const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
      expect(events).not.toContain("recording-dropped");
    });

    test("plays the others from their first turn if the first one failed", async () => {
      const engine = lampEngine(({ sessionId }) => (sessionId.endsWith("#0") ? outage : undefined));
      const [group] = await all(
        start({ engine, source: source(), grouping: { ...grouping, attempts: 1 } }),
      );
      expect(group!.episodes.map(({ outcome }) => outcome)).toEqual([
        "failed",
        "completed",
        "completed",
      ]);
      expect(group!.episodes.map(({ forkedFrom }) => forkedFrom)).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    });

    test("plays the others from their first turn if the first one has no reward, also in another start", async () => {
      // As if its time ran out.
      const player: AttemptPlayer = {
        play: async (assignment, setup, options) => {
          const episode = await playHere.play(assignment, setup, options);
          if (assignment.sampleIndex > 0) return episode;
          const { reward: _reward, rewardDetails: _details, ...story } = episode;
          return { ...story, outcome: "truncated", stopReason: "deadline" };
        },
      };
      const stop = new AbortController();
      {
        await using folder = await open();
        const engine = lampEngine(({ sessionId }) => {
          if (sessionId.endsWith("#2")) stop.abort();
        });
        const about = { engine, source: source(), grouping, folder, player };
        await start({ ...about, signal: stop.signal, admission: { concurrency: 1 } }).result;
      }
      await using folder = await open();
      expect(folder.finished.map(({ rolloutId }) => rolloutId)).toEqual([
        "lamp/test/0#0",
        "lamp/test/0#1",
      ]);
      const [first, second] = await all(
        start({ source: source(), grouping, folder, player, redeliver: true }),
      );
      for (const { episodes } of [first!, second!]) {
        expect(episodes.map(({ reward }) => reward)).toEqual([undefined, 1, 1]);
        // Each turn of the others is trained in their own rows.
        expect(episodes.map(({ forkedFrom }) => forkedFrom)).toEqual(Array(3).fill(undefined));
        expect(episodes.map(({ seed }) => seed)).toEqual(
          [0, 1, 2].map((place) => episodes[0]!.seed + place),
        );
      }
    });

    test("are played while a further task is waited for", async () => {
      const pushed = createPushedTasks();
      pushed.push({ task: environment.task("test", 0) });
      const run = start({ source: pushed, grouping, admission: { concurrency: 1 } });
      const { value } = (await run[Symbol.asyncIterator]().next()) as { value: EpisodeGroup };
      expect(value.episodes.length).toBe(3);
      // No further attempt starts, although the source may still give tasks.
      expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
    });

    test("start no further task before it is recorded, also if the disk refuses it", async () => {
      const refused = withResolvers();
      const [reached, branched] = [withResolvers(), withResolvers()];
      const files: Files = {
        ...diskFiles,
        open: async (name, mode) => {
          const file = await diskFiles.open(name, mode);
          if (path.basename(name) !== "events.jsonl") return file;
          const write: typeof file.write = async (bytes, position) => {
            if (Buffer.from(bytes).includes('"groupId":"lamp/test/4"')) {
              reached.resolve();
              await refused.promise;
              throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
            }
            return await file.write(bytes, position);
          };
          return Object.assign(Object.create(file) as typeof file, { write });
        },
      };
      const asked = new Set<string>();
      const engine = lampEngine(async ({ sessionId }) => {
        asked.add(sessionId);
        if (sessionId === "lamp/test/3#1") branched.resolve();
        await reached.promise;
      });
      const pushed = createPushedTasks();
      for (const index of [3, 4]) pushed.push({ task: environment.task("test", index) });
      pushed.end();
      {
        await using folder = await open({ files });
        const about = { engine, source: pushed, grouping: { size: 2, branchAt: [1] } };
        const run = start({ ...about, folder, admission: { concurrency: 3 } });
        await branched.promise;
        // If there is another attempt, a waiting player has received it at this point.
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        refused.resolve();
        await expect(run.result).rejects.toThrow(/^Cannot write .*events.jsonl: ENOSPC/);
      }
      expect([...asked]).toEqual(["lamp/test/3#0", "lamp/test/3#1"]);
      const again = createPushedTasks();
      again.push({ task: environment.task("test", 4) });
      again.end();
      await using folder = await open();
      const about = { source: again, grouping: { size: 2, branchAt: [1] } };
      const groups = await all(start({ ...about, folder, redeliver: true }));
      expect(groups.map(({ groupId, episodes }) => [groupId, episodes.length])).toEqual([
        ["lamp/test/3", 2],
        ["lamp/test/4", 2],
      ]);
    });

    test("need a world that can be played again", () => {
      const setup = { ...setupWith(lampEngine()), environment: lamps(3) };
      expect(() => start({ setup, grouping })).toThrow(
        /^Cannot branch: the environment lamp and the user scripted must be repeatable/,
      );
      expect(() => start({ grouping: { size: 2, branchAt: [-1] } })).toThrow(
        "Cannot branch at turn -1: expected a whole number of at least 0",
      );
    });

    test.each(["none", "failed"] as const)("are refused if record is %s", async (record) => {
      await using folder = await open({ record });
      expect(() => start({ folder, grouping })).toThrow(
        `Cannot branch (branchAt, or --branch-at) where record is "${record}": branches start from what ` +
          "is recorded; leave record (--record) out, or branchAt",
      );
    });

    test("are those of the folder's episodes", async () => {
      const stop = new AbortController();
      const play = async (branchAt: readonly number[] | undefined, stopAt?: string) => {
        await using folder = await open();
        const run = start({
          source: source(),
          folder,
          signal: stop.signal,
          admission: { concurrency: 1 },
          grouping: { size: 3, ...(branchAt && { branchAt }) },
          onEpisode: ({ rolloutId }) => {
            if (rolloutId === stopAt) stop.abort(new Error("enough"));
          },
        });
        return (await run.result).end;
      };
      expect(await play([1], "lamp/test/0#1")).toBe("interrupted");
      const refusal = `Cannot continue in ${dir}: its episodes were played with branchAt [1], and this start has`;
      await expect(play([0])).rejects.toThrow(
        `${refusal} [0]; start with the same or choose another`,
      );
      await expect(play([1, 0])).rejects.toThrow(`${refusal} [1,0]; `);
      await expect(play(undefined)).rejects.toThrow(`${refusal} []; `);
    });
  });

  test.each([0, 2])("refuses a fork with inputs of %i turns at turn 1", async (count) => {
    const { task } = createTaskList(environment, { split: "test", taskIndexes: [0] }).at(0, {
      signal: new AbortController().signal,
    }) as { task: Task };
    const outcome = { error: { message: "never asked for" } };
    const turn: Input = { type: "generation", promptHash: "", readings: 0, outcome };
    const inputs = { inputs: Array.from({ length: count }, () => turn), times: [] };
    const place = { rolloutId: "other#0", turnIndex: 1 };
    const source = createCurriculum(() => ({ task, fork: { place, inputs, seed: 7 } }));
    await expect(all(start({ source }))).rejects.toThrow(
      `Cannot part lamp/test/0#0 from other#0 with turn 1: the inputs are those of ${count} turns ` +
        "(see inputsBefore())",
    );
  });

  test("resumes a fork if its source does not give it again", async () => {
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
    const inputs: Input[] = [];
    const times: number[] = [];
    const { task } = source().at(0, { signal: new AbortController().signal }) as { task: Task };
    const place = { rolloutId: "other#0", groupId: "other", sampleIndex: 0, seed: 7 };
    await playEpisode({ task, ...place }, setupWith(lampEngine()), {
      signal: new AbortController().signal,
      onInputs: (more) => {
        inputs.push(...more.inputs);
        times.push(...more.times);
      },
    });
    const forkedFrom = { rolloutId: "other#0", turnIndex: 1 };
    const before = inputsBefore({ inputs, times }, 1)!;
    {
      await using folder = await open();
      const pushed = createPushedTasks();
      pushed.push({ task, fork: { place: forkedFrom, inputs: before, seed: 7 } });
      const stop = new AbortController();
      const engine = lampEngine(async () => {
        stop.abort(new Error("stopped"));
        await new Promise<never>(() => {});
      });
      const { signal } = stop;
      await start({ engine, source: pushed, folder, signal, admission: { concurrency: 1 } }).result;
    }
    await using folder = await open();
    const pushed = createPushedTasks();
    pushed.end();
    const [group] = await all(start({ source: pushed, folder }));
    expect(group!.episodes.map((episode) => [episode.forkedFrom, episode.reward])).toEqual([
      [forkedFrom, 1],
      [forkedFrom, 1],
    ]);
    const trained = group!.episodes[1]!.segments[0]!.lossMask.filter((bit) => bit === 1);
    expect(trained.length).toBe(characterIds("Goodbye!").length);
  });

  test("names the source that did not give its task, and blames an agent that breaks its own play", async () => {
    const at = () => Promise.reject(new Error("the list is gone"));
    await expect(all(start({ source: { at } }))).rejects.toThrow(
      "Cannot take task 0 from the source of tasks: the list is gone",
    );
    await expect(all(start({ source: createCurriculum(() => ({}) as never) }))).rejects.toThrow(
      "Cannot take task 0 from the source of tasks: it gave none, expected { task }, with an id",
    );
    const playing = (play: NonNullable<StartRunOptions["setup"]["play"]>) =>
      all(
        start({
          setup: { ...setupWith(lampEngine()), play },
          source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
          grouping: { size: 2, attempts: 1 },
        }),
      );
    const [group] = await playing(async (assignment, setup, options) => {
      if (assignment.sampleIndex === 0) throw new Error("a bug of the agent's");
      return await playEpisode(assignment, setup, options);
    });
    const [broken, other] = group!.episodes;
    expect(broken).toMatchObject({
      outcome: "failed",
      failure: {
        party: "agent",
        code: "agent/exception",
        message: "Cannot play lamp/test/0#0 as agent tool-calling: a bug of the agent's",
      },
    });
    expect(broken).not.toHaveProperty("reward");
    expect(other).toMatchObject({ outcome: "completed", reward: 1 });
    const [silent] = await playing(() => Promise.resolve({} as Episode));
    expect(silent!.episodes[0]!.failure?.message).toContain(
      "is not an episode of this rollout (rolloutId is undefined), expected one",
    );
  });

  test.each<[what: string, change: object, why: string]>([
    ["another group", { groupId: "lamp/test/1" }, 'groupId is "lamp/test/1"'],
    [
      "a reward that is none",
      { reward: Number.NaN },
      "reward is null, expected a number that is finite in 32 bits",
    ],
    ["a failure without a party", { outcome: "failed" }, "stopReason is"],
    ["a row of no known format", { format: undefined }, "format is undefined"],
    ["another split", { split: "train" }, 'split is "train"'],
    ["another place in the run", { groupIndex: 7 }, "groupIndex is 7"],
    ["no sums", { counts: {} }, "counts.turnCount is undefined"],
    ["a segment that is none", { segments: [null] }, "segments[0] is not an object"],
    ["a segment without ids", { segments: [{}] }, "segments[0].tokenIds is not a list"],
    [
      "a logprob that is none",
      {
        segments: [
          {
            tokenIds: [1],
            lossMask: [1],
            logprobs: [Number.NaN],
            policyVersions: [""],
            spans: [],
            turns: [],
            promptLength: 0,
          },
        ],
      },
      "segments[0].logprobs",
    ],
    [
      "a logprob of what was never sampled",
      {
        segments: [
          {
            tokenIds: [1, 2],
            lossMask: [0, 1],
            logprobs: [0, -1e308],
            policyVersions: ["", "1"],
            spans: [],
            turns: [],
            promptLength: 1,
          },
        ],
      },
      "segments[0].logprobs",
    ],
    [
      "a prompt that is longer than all",
      {
        segments: [
          {
            tokenIds: [1],
            lossMask: [0],
            logprobs: [0],
            policyVersions: [""],
            spans: [],
            turns: [],
            promptLength: 2,
          },
        ],
      },
      "segments[0].promptLength",
    ],
    [
      "that it was interrupted, without an interruption",
      { outcome: "aborted", stopReason: "interrupted", reward: undefined },
      "outcome is aborted, but it was not interrupted",
    ],
    ["a turn that is none", { turns: [null] }, "turns[0] is not an object"],
    [
      "a turn of no text",
      { turns: [{ text: null }] },
      "turns[0] is not the record of a turn: its text is null",
    ],
    ["a tree that is none", { tree: [null] }, "tree[0] is not a turn of a tree"],
    ["troubles that are none", { troubles: 5 }, "troubles is 5, expected a list of failures"],
    ["a reward without a row", { segments: [] }, "its segments have 0 turns, expected 2"],
    ["another seed", { seed: 7 }, "seed is 7"],
    ["another environment", { environment: "fans" }, 'environment is "fans"'],
    ["another play", { attempt: 7 }, "attempt is 7"],
    ["a time that is none", { durationMs: Number.NaN }, "durationMs is null"],
    ["a bill without its ids", { userUsage: { callCount: 1 } }, "userUsage.inputTokenCount is"],
    [
      "what is no JSON",
      { rewardDetails: { seen: 1n } },
      "cannot be written as JSON: Do not know how to serialize",
    ],
  ])("fails an attempt if its own player returns %s", async (_, change, why) => {
    const setup = setupWith(lampEngine());
    const [group] = await all(
      start({
        setup: {
          ...setup,
          play: async (assignment, own, options) => ({
            ...(await playEpisode(assignment, own, options)),
            ...change,
          }),
        },
        source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
        grouping: { size: 1, attempts: 1 },
      }),
    );
    const [episode] = group!.episodes;
    expect(episode).toMatchObject({ outcome: "failed", failure: { code: "agent/exception" } });
    expect(episode).not.toHaveProperty("reward");
    expect(episode!.failure?.message).toContain(why);
  });

  test.each<[what: string, thrown: unknown, message: string]>([
    [
      "a failure without a party",
      new RolloutError("disk/full" as never, "no room"),
      "Cannot play lamp/test/0#0 as agent tool-calling: no room",
    ],
    [
      "a failure that cannot be written",
      new RolloutError("agent/full", "no room", { discarded: [1n] as never }),
      "Cannot play lamp/test/0#0 as agent tool-calling: no room",
    ],
    [
      "what cannot be read",
      new Proxy(new Error("no"), {
        getPrototypeOf: () => {
          throw new TypeError("no");
        },
      }),
      "Cannot play lamp/test/0#0 as agent tool-calling: an object without a text",
    ],
    ["a failure of its own", new RolloutError("user/gone", "they left"), "they left"],
  ])("fails an attempt if its own player throws %s", async (_, thrown, message) => {
    const [group] = await all(
      start({
        setup: {
          ...setupWith(lampEngine()),
          // eslint-disable-next-line typescript/prefer-promise-reject-errors
          play: () => Promise.reject(thrown),
        },
        source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
        grouping: { size: 1, attempts: 1 },
      }),
    );
    const [episode] = group!.episodes;
    const code = message === "they left" ? "user/gone" : "agent/exception";
    expect(episode).toMatchObject({ outcome: "failed", failure: { code, message } });
    expect(() => JSON.stringify(episode)).not.toThrow();
  });

  test("does not wait for an attempt that its own player plays on when it is not needed any more", async () => {
    const play: NonNullable<StartRunOptions["setup"]["play"]> = async (assignment, own, options) =>
      assignment.sampleIndex === 0
        ? await new Promise(() => {})
        : await playEpisode(assignment, own, options);
    const run = start({
      setup: { ...setupWith(lampEngine()), play },
      source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
      grouping: { size: 1, started: 2 },
    });
    const [group] = await all(run);
    expect(group!.episodes.map(({ sampleIndex }) => sampleIndex)).toEqual([1]);
    expect(await run.result).toMatchObject({ end: "finished", progress: { running: 0 } });
  });

  const unreadable = (): never => {
    throw new TypeError("no");
  };

  test.each<[what: string, thrown: () => unknown]>([
    ["nothing", () => undefined],
    ["a text", () => "no"],
    ["a symbol", () => Symbol("no")],
    ["a frozen error", () => Object.freeze(new Error("key s3cr3t-key-0"))],
    [
      "an error without a message",
      () => Object.defineProperty(new Error(), "message", { get: unreadable }),
    ],
    [
      "an error without a stack",
      () => Object.defineProperty(new Error("no"), "stack", { get: unreadable }),
    ],
    [
      "an error whose cause throws",
      () => Object.defineProperty(new Error("no"), "cause", { get: unreadable }),
    ],
    ["a proxy", () => new Proxy(new Error("no"), { get: unreadable, getPrototypeOf: unreadable })],
    ["a failure with a lone surrogate", () => new RolloutError("user/gone", "\ud800")],
  ])("fails one attempt alone if any part throws %s", async (_, thrown) => {
    const fail = (): never => {
      // eslint-disable-next-line typescript/only-throw-error
      throw thrown();
    };
    const { agent, user, ...setup } = setupWith(lampEngine());
    const broken = (name: keyof World): Environment => ({
      ...environment,
      open: async (...call) => Object.assign(await environment.open(...call), { [name]: fail }),
    });
    const breaks: readonly Partial<StartRunOptions["setup"]>[] = [
      { environment: { ...environment, open: fail } },
      ...(["begin", "step", "score", Symbol.asyncDispose] as const).map((name) => ({
        environment: broken(name as keyof World),
      })),
      { user: { ...user, open: fail } },
      { user: { ...user, open: () => ({ begin: fail, reply: fail, usage: fail }) } },
      { agent: { ...agent, open: fail } },
      { agent: { ...agent, read: fail } },
      { agent: { ...agent, observe: fail } },
      { engine: { ...setup.engine, generate: fail } },
      { play: fail },
    ];
    for (const [index, change] of breaks.entries()) {
      await rm(dir, { recursive: true });
      dir = await mkdtemp(path.join(tmpdir(), "turnwright-start-run-"));
      await using folder = await open();
      const { result } = start({
        setup: { agent, user, ...setup, ...change },
        source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
        redactor: new Redactor(["s3cr3t-key-0"]),
        grouping: { size: 1, attempts: 1 },
        folder,
      });
      expect([index, (await result).end]).toEqual([index, "finished"]);
      const rows = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
      // An error while a world is cleaned up changes nothing.
      expect(rows).toContain(index === 4 ? '"outcome":"completed"' : '"outcome":"failed"');
      const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
      expect(rows + events).not.toContain("s3cr3t-key-0");
    }
  });

  describe("with over-sampling", () => {
    const plan = { environment: "lamp", split: "test", seed: 0, sampleCount: 2 };
    const planned = { ...plan, taskIndexes: [0, 1, 2] };

    /** Plays, with attempt 1 of each group cancelled; returns what verify reports about episodes and plan. */
    async function playAndVerify(found: unknown) {
      const play: NonNullable<StartRunOptions["setup"]["play"]> = async (
        assignment,
        own,
        options,
      ) =>
        assignment.sampleIndex === 1
          ? await new Promise(() => {})
          : await playEpisode(assignment, own, options);
      const manifest = { ...testManifest, found: { plan: found } };
      {
        await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
        const setup = { ...setupWith(lampEngine()), play };
        await all(start({ setup, folder, grouping: { size: 2, started: 3 } }));
      }
      const { isFinished, missing, planned, violations } = await verifyRun(dir);
      const rules = ["plan", "missing", "summary", "events"];
      const details = violations.filter(({ rule }) => rules.includes(rule));
      return { isFinished, missing, planned, details };
    }

    async function exportedIds(to: ExportTarget): Promise<readonly [unknown, unknown][]> {
      const { content } = await exportRun(dir, to);
      let text = "";
      for await (const bytes of content) text += Buffer.from(bytes).toString("utf8");
      const rows = text.split("\n").slice(0, -1);
      return rows.map((row) => {
        const { session_id: id, index } = JSON.parse(row) as Record<string, unknown>;
        return [id, index];
      });
    }

    async function tableIds(): Promise<readonly string[]> {
      const ids: string[] = [];
      for await (const { rolloutId } of readTableRows(dir)) ids.push(rolloutId);
      return ids;
    }

    test.each<[string, unknown]>([
      ["a plan", planned],
      ["passes", { ...plan, isOpen: true, passOver: [0, 1, 2] }],
    ])("verify finds no problem with %s", async (_, found) => {
      expect(await playAndVerify(found)).toEqual({ isFinished: true, details: [] });
    });

    test("verify compares slime's file with the attempts if no plan is recorded", async () => {
      const manifest = { ...testManifest, configuration: { format: "slime" }, found: {} };
      const source = createEndlessTasks(environment, {
        split: "test",
        taskIndexes: [0, 1],
        seed: 3,
      });
      {
        const options = { retryFailed: false, format: "slime" } as const;
        await using folder = await RunFolder.open(dir, manifest, options);
        const grouping = { size: 2, started: 3 };
        await all(start({ source: { ...source, length: 3 }, folder, grouping }));
      }
      const detailsOf = async (): Promise<readonly string[]> => {
        const { violations } = await verifyRun(dir);
        return violations.map(({ detail }) => detail);
      };
      expect(await detailsOf()).toEqual([]);
      const file = path.join(dir, "samples.slime.jsonl");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace('"reward":1,', '"reward":0,'));
      expect(await detailsOf()).toEqual(["reward is 0, expected 1 by the sample"]);
    });

    test("verify misses an attempt of an incomplete group", async () => {
      await playAndVerify(planned);
      const file = path.join(dir, "episodes.jsonl");
      const rows = (await readFile(file, "utf8")).split("\n");
      await writeFile(file, rows.filter((row) => !row.includes("lamp/test/1#2")).join("\n"));
      const { missing } = await verifyRun(dir);
      expect(missing).toEqual(["attempt 1 of task 1", "attempt 2 of task 1"]);
    });

    test("trainers get the delivered attempts, and tables all that ended", async () => {
      await playAndVerify(planned);
      expect(await exportedIds("slime")).toEqual([
        ["lamp/test/0#0", 0],
        ["lamp/test/0#2", 2],
        ["lamp/test/1#0", 3],
        ["lamp/test/1#2", 5],
        ["lamp/test/2#0", 6],
        ["lamp/test/2#2", 8],
      ]);
      expect(await tableIds()).toEqual(await rolloutIdsIn(dir, "samples.jsonl"));
    });

    test("trainers get no attempt that ended although it was cancelled, and tables do", async () => {
      // Attempt 0 is being written when attempt 1 completes the group.
      const writing = withResolvers();
      const whole = withResolvers();
      const engine = lampEngine(async ({ sessionId }) => {
        if (sessionId.endsWith("#1")) await writing.promise;
      });
      const found = { plan: { ...plan, sampleCount: 1, taskIndexes: [0] } };
      const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
      {
        await using folder = await RunFolder.open(
          dir,
          { ...testManifest, found },
          { retryFailed: false },
        );
        const write = folder.writeEpisode.bind(folder);
        vi.spyOn(folder, "writeEpisode").mockImplementation(async (episode) => {
          writing.resolve();
          if (episode.sampleIndex === 0) await whole.promise;
          return await write(episode);
        });
        const onEpisode = ({ sampleIndex }: Episode): void => {
          if (sampleIndex === 1) whole.resolve();
        };
        await all(start({ engine, source, folder, onEpisode, grouping: { size: 1, started: 2 } }));
      }
      expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["lamp/test/0#1", "lamp/test/0#0"]);
      expect(await exportedIds("slime")).toEqual([["lamp/test/0#1", 1]]);
      expect(await tableIds()).toEqual(["lamp/test/0#0", "lamp/test/0#1"]);
    });

    test("continues with the same number of started attempts, by which seeds are counted", async () => {
      await playAndVerify(planned);
      const manifest = { ...testManifest, found: { plan: planned } };
      await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
      expect(() => start({ folder, grouping: { size: 2, started: 4 } })).toThrow(
        new UsageError(
          `Cannot continue in ${dir}: its episodes were played with started 3, and this start has 4; start with ` +
            "the same or choose another folder",
        ),
      );
    });

    test("continues with the same group size, by which failures are kept or played again", async () => {
      const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
      const engine = lampEngine(({ sessionId }) => (sessionId.endsWith("#2") ? undefined : outage));
      {
        await using folder = await open();
        const grouping = { size: 1, started: 3, attempts: 1 };
        await start({ source: source(), folder, engine, grouping, admission: { concurrency: 1 } })
          .result;
      }
      const before = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
      for (const size of [2, 3]) {
        await using folder = await open({ retryFailed: true });
        expect(() => start({ folder, source: source(), grouping: { size, started: 3 } })).toThrow(
          new UsageError(
            `Cannot continue in ${dir}: its episodes were played with size 1, and this start has ${size}; start ` +
              "with the same or choose another folder",
          ),
        );
      }
      // The group was complete without the failures, so they stay.
      expect(await readFile(path.join(dir, "episodes.jsonl"), "utf8")).toBe(before);
    });
  });

  test("verify finds no problem if an engine changed the ids that it was sent", async () => {
    const engine = lampEngine(({ promptIds }, turn) => {
      if (turn === 1) (promptIds as number[])[0] = 7;
    });
    await using folder = await open();
    const [group] = await all(
      start({
        engine,
        source: createTaskList(environment, { split: "test", taskIndexes: [0] }),
        folder,
        grouping: { size: 1, attempts: 1 },
      }),
    );
    expect(group!.episodes[0]).toMatchObject({
      outcome: "failed",
      failure: { code: "engine/bad-reply" },
      turns: { length: 2 },
      segments: [],
    });
    const { violations } = await verifyRun(dir);
    expect(violations.filter(({ file }) => /episodes|samples/.test(file))).toEqual([]);
  });

  test("asks a curriculum, and reports how each group ended", async () => {
    const reported: (readonly [string, readonly (number | undefined)[]])[] = [];
    const source = createCurriculum(
      (groupIndex) =>
        groupIndex < 3 ? { task: environment.task("test", reported.length * 10) } : undefined,
      (group) => reported.push([group.groupId, rewardsOf(group)]),
    );
    await all(start({ source, admission: { concurrency: 1 } }));
    expect(reported.map(([groupId]) => groupId)).toEqual([
      "lamp/test/0",
      "lamp/test/10",
      "lamp/test/20",
    ]);
    expect(reported[0]![1]).toEqual([1, 1]);
  });

  test("takes any iterable of tasks", async () => {
    async function* tasks() {
      yield environment.task("test", 9);
      yield environment.task("test", 8);
    }
    const groups = await all(start({ source: createTaskStream(tasks()) }));
    expect(groups.map(({ groupId }) => groupId)).toEqual(["lamp/test/9", "lamp/test/8"]);
  });

  test.each(["hold", "interrupt"] as const)(
    "changes the policy's weights while episodes are played: %s",
    async (mode) => {
      let version = 1;
      let live = 0;
      let liveDuringUpdate = -1;
      const asked = withResolvers();
      const release = withResolvers();
      const engine: Engine = {
        ...preparedEngine([]),
        async generate(request, options) {
          live += 1;
          try {
            const rest = characterIds(turnOf(request) === 0 ? switchCall : "Goodbye!");
            const before = request.requestId.includes(";w") ? 4 : 0;
            asked.resolve();
            const isCut = await Promise.race([
              release.promise.then(() => false),
              new Promise<boolean>((resolve) => {
                if (options?.cutShort?.aborted === true) resolve(true);
                options?.cutShort?.addEventListener("abort", () => resolve(true));
              }),
            ]);
            const outputIds = isCut ? rest.slice(0, 4) : rest.slice(before);
            const finish = isCut ? ("length" as const) : ("stop" as const);
            return await preparedEngine([
              {
                outputIds,
                finish: { type: finish },
                pieces: [
                  {
                    requestId: request.requestId,
                    tokenCount: outputIds.length,
                    policyVersion: String(version),
                    finish: isCut ? "abort" : "stop",
                  },
                ],
              },
            ]).generate(request, options);
          } finally {
            live -= 1;
          }
        },
      };
      const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
      const run = start({ engine, source, grouping: { size: 1 } });
      await asked.promise;
      const updating = run.updatePolicy(
        2,
        async () => {
          liveDuringUpdate = live;
          version = 2;
        },
        mode,
      );
      if (mode === "hold") release.resolve();
      await updating;
      release.resolve();
      const [group] = await all(run);
      expect(liveDuringUpdate).toBe(0);
      const { policyVersions, lossMask, tokenIds } = group!.episodes[0]!.segments[0]!;
      const trained = policyVersions.filter((_, index) => lossMask[index] === 1);
      const firstTurn = characterIds(switchCall).length;
      const old = mode === "hold" ? firstTurn : 4;
      expect(trained).toEqual(trained.map((_, index) => (index < old ? "1" : "2")));
      expect(trained.length).toBe(firstTurn + characterIds("Goodbye!").length);
      expect(tokenIds.length).toBe(lossMask.length);
      expect(group!.episodes[0]).toMatchObject({ outcome: "completed", reward: 1 });
      expect(group!.staleness).toBe(1);
    },
  );

  test.each(["between turns", "within one"] as const)(
    "does not count the time for which the policy is held: %s",
    async (moment) => {
      const clock = createManualClock();
      const limits = { ...defaultLimits, engineTimeoutMs: 1000, episodeTimeoutMs: 2000 };
      const asked = withResolvers();
      const holding = withResolvers();
      const engine: Engine = {
        ...preparedEngine([]),
        async generate(request, options) {
          const rest = characterIds(turnOf(request) === 0 ? switchCall : "Goodbye!");
          const { requestId } = request;
          const isFirst = turnOf(request) === 0 && !requestId.includes(";w");
          if (isFirst) {
            asked.resolve();
            await holding.promise;
          }
          const isCut = isFirst && moment === "within one";
          const outputIds = isCut
            ? rest.slice(0, 4)
            : requestId.includes(";w")
              ? rest.slice(4)
              : rest;
          const tokenCount = outputIds.length;
          const finish = isCut ? ("abort" as const) : ("stop" as const);
          const reply = {
            outputIds,
            finish: { type: isCut ? ("length" as const) : ("stop" as const) },
            pieces: [{ requestId, tokenCount, policyVersion: "1", finish }],
          };
          return await preparedEngine([reply]).generate(request, options);
        },
      };
      const setup = { ...setupWith(engine), limits, clock: createClock(clock) };
      const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
      const run = start({ source, setup, grouping: { size: 1 } });
      await asked.promise;
      const paused = run.pause(moment === "within one" ? "interrupt" : "hold");
      holding.resolve();
      await paused;
      for (let round = 0; round < 20; round++) await new Promise((next) => setImmediate(next));
      await clock.advance(3_600_000);
      run.resume();
      const [group] = await all(run);
      expect(group!.episodes[0]).toMatchObject({ outcome: "completed", reward: 1, attempt: 1 });
    },
  );

  test("does not count the time for which the policy was held before a stop", async () => {
    const clock = createManualClock();
    const limits = { ...defaultLimits, episodeTimeoutMs: 2000 };
    const opened = withResolvers();
    const reached = withResolvers();
    const never = new Promise<Generation>(() => {});
    const engine = (isStuck: boolean): Engine => ({
      ...preparedEngine([]),
      async generate(request, options) {
        const turn = turnOf(request);
        if (turn === 2) reached.resolve();
        if (turn === 2 && isStuck) return await never;
        return await preparedEngine([says(turn < 3 ? switchCall : "Goodbye!")]).generate(
          request,
          options,
        );
      },
    });
    const ownEnvironment: Environment = {
      ...environment,
      async open(...call) {
        opened.resolve();
        return await environment.open(...call);
      },
    };
    const setup = (by: Engine): StartRunOptions["setup"] => ({
      ...setupWith(by),
      environment: ownEnvironment,
      limits,
      clock: createClock(clock),
      now: clock.now,
    });
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
    const grouping = { size: 1 };
    {
      await using folder = await open();
      const stop = new AbortController();
      const held = setup(engine(true));
      const run = start({ source: source(), setup: held, grouping, folder, signal: stop.signal });
      await run.pause();
      await opened.promise;
      for (let round = 0; round < 20; round++) await new Promise((next) => setImmediate(next));
      await clock.advance(3_600_000);
      run.resume();
      await reached.promise;
      stop.abort(new DOMException("stopped", "AbortError"));
      await run.result;
    }
    await using folder = await open();
    const [group] = await all(
      start({ source: source(), setup: setup(engine(false)), grouping, folder }),
    );
    expect(group!.episodes[0]).toMatchObject({ outcome: "completed", reward: 1, attempt: 1 });
    expect(group!.episodes[0]!.turns.map(({ engineMs }) => engineMs)).toEqual([0, 0, 0, 0]);
    expect(group!.episodes[0]!.durationMs).toBe(0);
  });

  test.each(["interrupt", "stop"] as const)(
    "ends by %s while a source that heeds no signal is waited for",
    async (how) => {
      const clock = createManualClock();
      const played = withResolvers();
      const asked = withResolvers();
      async function* tasks(): AsyncGenerator<Task> {
        yield environment.task("test", 0);
        asked.resolve();
        await new Promise<never>(() => {});
      }
      const stop = new AbortController();
      const run = start({
        source: createTaskStream(tasks()),
        signal: stop.signal,
        grouping: { size: 1 },
        setup: { ...setupWith(lampEngine()), clock: createClock(clock) },
        onEpisode: () => played.resolve(),
      });
      await Promise.all([played.promise, asked.promise]);
      if (how === "stop") stop.abort(new DOMException("stopped", "AbortError"));
      else void run.interrupt();
      await clock.untilSleeping(5000);
      await clock.advance(5000);
      expect(await run.result).toMatchObject({ end: "interrupted", progress: { finished: 1 } });
    },
  );

  test("ends without an error if a source reports the stop in its own way", async () => {
    const asked = withResolvers();
    const at = async (_: number, { signal }: { readonly signal: AbortSignal }) => {
      asked.resolve();
      // As Node's own timers do, among others.
      await sleep(60_000, undefined, { signal });
      return undefined;
    };
    const run = start({ source: { at }, grouping: { size: 1 } });
    await asked.promise;
    expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
  });

  test.each<Partial<StartRunOptions["grouping"]>>([{}, { branchAt: [1] }])(
    "notes a task that its source gives away as the run is stopped, with %o",
    async (more) => {
      const grouping = { size: 1, ...more };
      const asked = withResolvers();
      const given = withResolvers();
      async function* tasks(): AsyncGenerator<Task> {
        asked.resolve();
        await given.promise;
        yield environment.task("test", 7);
      }
      {
        await using folder = await open();
        const run = start({ source: createTaskStream(tasks()), folder, grouping });
        await asked.promise;
        const ended = run.interrupt();
        // It does not end before.
        for (let look = 0; look < 100; look++) {
          expect(await readFile(path.join(dir, "events.jsonl"), "utf8")).not.toContain("run-ended");
        }
        given.resolve();
        expect(await ended).toMatchObject({ end: "interrupted", progress: { finished: 0 } });
      }
      await using folder = await open();
      const groups = await all(start({ source: createTaskStream([]), folder, grouping }));
      expect(groups.map(({ groupId }) => groupId)).toEqual(["lamp/test/7"]);
    },
  );

  test("delivers no group that is too old, or removes its old tokens from the loss", async () => {
    const play = async (beyond: "drop" | "mask" | "mark") => {
      const run = start({ staleness: { max: 1, beyond }, admission: { concurrency: 1 } });
      run.announcePolicy(4);
      return await all(run);
    };
    expect(await play("drop")).toEqual([]);
    const marked = await play("mark");
    expect(marked.map(({ staleness }) => staleness)).toEqual([3, 3, 3]);
    const masked = await play("mask");
    const bits = masked.flatMap(({ episodes }) =>
      episodes.flatMap(({ segments }) => segments.flatMap(({ lossMask }) => lossMask)),
    );
    expect(bits.length).toBeGreaterThan(0);
    expect(bits.every((bit) => bit === 0)).toBe(true);
  });

  test.each(["", "default", "3f2a91c", "1e3"])(
    "uses the announced version for tokens if the engine says %j",
    async (said) => {
      const play = async (beyond: "drop" | "mask" | "mark", newest: number) => {
        const run = start({
          engine: lampEngine(undefined, () => said),
          staleness: { max: 1, beyond },
        });
        run.announcePolicy(1);
        await run.result;
        run.announcePolicy(newest);
        return await all(run);
      };
      const fresh = await play("drop", 2);
      expect(fresh.map(({ staleness }) => staleness)).toEqual([1, 1, 1]);
      expect(sampledVersions(fresh)).toEqual(["1"]);
      expect(await play("drop", 3)).toEqual([]);
      expect((await play("mark", 11)).map(({ staleness }) => staleness)).toEqual([10, 10, 10]);
      expect(sampledVersions(await play("mask", 2))).toEqual(["1"]);
      expect(sampledVersions(await play("mask", 3))).toEqual([]);
    },
  );

  test("a turn that is sampled while the version changes counts as one of the older version", async () => {
    const [asked, changed] = [withResolvers(), withResolvers()];
    const engine = lampEngine(
      async (_, turn) => {
        if (turn > 0) return;
        asked.resolve();
        await changed.promise;
      },
      () => "default",
    );
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    const run = start({ engine, source, grouping: { size: 1 } });
    run.announcePolicy(1);
    await asked.promise;
    await run.updatePolicy(2, () => Promise.resolve(), "finish");
    changed.resolve();
    const [group] = await all(run);
    const { lossMask, policyVersions } = group!.episodes[0]!.segments[0]!;
    const first = characterIds(switchCall).map(() => "1");
    const second = characterIds("Goodbye!").map(() => "2");
    expect(policyVersions.filter((_, index) => lossMask[index] === 1)).toEqual([
      ...first,
      ...second,
    ]);
    expect(group!.staleness).toBe(1);
  });

  test("all prompts of a folder's run have the date of its start", async () => {
    const dates: (Date | undefined)[] = [];
    const setup = setupWith(lampEngine());
    const renderer = rendererOf(setup);
    const noting: typeof renderer = {
      ...renderer,
      prompt: async (conversation) => {
        dates.push(conversation.now);
        return await renderer.prompt(conversation);
      },
      delta: async (change) => {
        dates.push(change.now);
        return await renderer.delta(change);
      },
    };
    const begun = new Date(2026, 10, 23, 10, 5);
    expect(testManifest.promptTime).toBe("2026-11-23T10:05:00.000");
    for (const [index, promptTime] of [begun, new Date(2026, 10, 24)].entries()) {
      await using folder = await open();
      await all(
        start({
          setup: { ...setup, renderer: noting, promptTime },
          source: createTaskList(environment, {
            split: "test",
            taskIndexes: [0, 1].slice(0, index + 1),
          }),
          folder,
        }),
      );
    }
    // For each attempt: the prompt, and the observation after its first turn.
    expect(dates).toEqual(Array.from({ length: 2 * 2 * 2 }, () => begun));
  });

  test("replays episodes with announced versions to the byte", async () => {
    const setup = setupWith(lampEngine(undefined, () => "default"));
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    {
      await using folder = await open();
      const run = start({ setup, source, folder, grouping: { size: 1 } });
      run.announcePolicy(6);
      expect(sampledVersions(await all(run))).toEqual(["6"]);
    }
    await using folder = await open();
    const [row, sample] = await Promise.all(
      ["episodes.jsonl", "samples.jsonl"].map(
        async (name) => JSON.parse(await readFile(path.join(dir, name), "utf8")) as never,
      ),
    );
    const recorded = await folder.recordings.read("lamp/test/0#0");
    const stored = { recorded: recorded!, row: row!, samples: [sample!] };
    expect(await replayEpisode(stored, { setup })).toMatchObject({ type: "identical" });
  });

  test.each(["drop", "mask", "mark"] as const)(
    "does not take tokens of unknown version for fresh: %s",
    async (beyond) => {
      const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
      const run = start({
        engine: lampEngine(undefined, () => "default"),
        staleness: { max: 1000, beyond },
      });
      await run.result;
      const groups = run[Symbol.asyncIterator]();
      const first = (await groups.next()).value as EpisodeGroup;
      // No newer version is known.
      expect(first).not.toHaveProperty("staleness");
      expect(sampledVersions([first])).toEqual(["default"]);
      run.announcePolicy(1);
      const rest: EpisodeGroup[] = [];
      for (;;) {
        const next = await groups.next();
        if (next.done === true) break;
        rest.push(next.value);
      }
      expect(rest).toHaveLength(beyond === "drop" ? 0 : 2);
      expect(rest.every((group) => !("staleness" in group))).toBe(true);
      expect(sampledVersions(rest)).toEqual(beyond === "mark" ? ["default"] : []);
      const becomes = {
        drop: "such groups are left out",
        mask: "such tokens leave the loss",
        mark: "",
      }[beyond];
      const warning =
        `Cannot determine the age of the tokens of group ${first.groupId}, although staleness is bounded: the engine ` +
        'named "default" as their version, expected a whole number, and none was announced before they were ' +
        `sampled; as soon as a version is known, ${becomes}: announce the first one with announcePolicy() when ` +
        "the run is started";
      expect(warned.mock.calls).toEqual(beyond === "mark" ? [] : [[warning]]);
      warned.mockRestore();
    },
  );

  test("does not take tokens of an earlier start without a known version for fresh", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const engine = lampEngine(undefined, () => "");
    const reached = withResolvers();
    const stuck: Engine = {
      ...engine,
      async generate(request, options) {
        if (turnOf(request) === 0) return await engine.generate(request, options);
        reached.resolve();
        return await new Promise<never>(() => {});
      },
    };
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
    const options = { grouping: { size: 1 }, staleness: { max: 1, beyond: "mask" } } as const;
    {
      await using folder = await open();
      const stop = new AbortController();
      const earlier = { engine: stuck, source: source(), folder, signal: stop.signal };
      const run = start({ ...options, ...earlier });
      await reached.promise;
      stop.abort(new DOMException("stopped", "AbortError"));
      await run.result;
    }
    await using folder = await open();
    const run = start({ ...options, engine, source: source(), folder });
    run.announcePolicy(5);
    const [group] = await all(run);
    const { lossMask, policyVersions, turns } = group!.episodes[0]!.segments[0]!;
    expect(policyVersions.slice(turns[1]!.start, turns[1]!.end)).toEqual(
      characterIds("Goodbye!").map(() => "5"),
    );
    // The first turn was recorded without a version.
    expect(lossMask.slice(turns[0]!.start, turns[0]!.end)).not.toContain(1);
    expect(lossMask.filter((bit) => bit === 1)).toHaveLength(characterIds("Goodbye!").length);
    expect(warned).toHaveBeenCalledTimes(1);
    warned.mockRestore();
  });

  test("delays new groups until the trainer has caught up", async () => {
    let begun = 0;
    const engine = lampEngine(({ sessionId }, turn) => {
      if (turn === 0 && sessionId.endsWith("#0")) begun += 1;
    });
    const source = createEndlessTasks(environment, {
      split: "test",
      taskIndexes: [0, 1, 2],
      seed: 1,
    });
    const run = start({
      engine,
      source,
      admission: { concurrency: 2 },
      staleness: { max: 1, beyond: "wait", groupsPerVersion: 2 },
    });
    run.announcePolicy(1);
    const groups = run[Symbol.asyncIterator]();
    for (let count = 0; count < 4; count++) await groups.next();
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(4);
    run.announcePolicy(2);
    for (let count = 0; count < 2; count++) await groups.next();
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(6);
    await groups.return?.(undefined);
  });

  test.each(["announces", "updates"] as const)(
    "waits no longer than for the trainer if the first version was not announced: it %s",
    async (how) => {
      const source = createEndlessTasks(environment, {
        split: "test",
        taskIndexes: [0, 1, 2],
        seed: 1,
      });
      const run = start({
        engine: lampEngine(undefined, () => "default"),
        source,
        admission: { concurrency: 2 },
        staleness: { max: 0, beyond: "wait", groupsPerVersion: 2 },
      });
      let taken = 0;
      const train = async (): Promise<void> => {
        for await (const _ of run) {
          taken += 1;
          if (taken === 6) break;
          if (taken % 2 === 1) continue;
          const version = 1 + taken / 2;
          if (how === "announces") run.announcePolicy(version);
          else await run.updatePolicy(version, () => Promise.resolve());
        }
      };
      const trained = train();
      for (let round = 0; round < 500; round++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(taken).toBe(6);
      await trained;
    },
  );

  test("sees newer versions on the engine while it waits without announcements", async () => {
    const clock = createManualClock();
    let [version, describedCount] = [1, 0];
    const engine: Engine = {
      ...lampEngine(undefined, () => String(version)),
      async describe() {
        describedCount += 1;
        // It is away now and then.
        if (describedCount === 2) throw outage;
        const policyVersion = String(version);
        return { kind: "prepared", logprobConvention: "tempered", policyVersion };
      },
    };
    const run = start({
      setup: { ...setupWith(engine), clock: createClock(clock) },
      source: createEndlessTasks(environment, { split: "test", taskIndexes: [0, 1, 2], seed: 1 }),
      admission: { concurrency: 2 },
      staleness: { max: 0, beyond: "wait", groupsPerVersion: 2 },
    });
    const groups = run[Symbol.asyncIterator]();
    const stalenesses: unknown[] = [];
    const take = async (): Promise<void> => {
      for (let count = 0; count < 2; count++) {
        const { value } = (await groups.next()) as { value: EpisodeGroup };
        stalenesses.push(value.staleness);
      }
    };
    await take();
    await untilWaiting(clock);
    await clock.advance(1000);
    // It has no news yet, and is away the next time.
    await untilWaiting(clock);
    version = 2;
    await clock.advance(1000);
    await untilWaiting(clock);
    expect(describedCount).toBe(2);
    await clock.advance(1000);
    await take();
    expect(describedCount).toBe(3);
    // A trainer that announces versions is not asked any more.
    await untilWaiting(clock);
    version = 3;
    run.announcePolicy(version);
    await take();
    await clock.advance(10_000);
    expect(describedCount).toBe(3);
    expect(stalenesses).toEqual([0, 0, 0, 0, 0, 0]);
    await groups.return?.(undefined);
  });

  test("warns once that it waits for versions that are not named", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const clock = createManualClock();
    const run = start({
      setup: {
        ...setupWith(lampEngine(undefined, () => "default")),
        clock: createClock(clock),
      },
      source: createEndlessTasks(environment, { split: "test", taskIndexes: [0, 1, 2], seed: 1 }),
      admission: { concurrency: 2 },
      staleness: { max: 0, beyond: "wait", groupsPerVersion: 1 },
    });
    const groups = run[Symbol.asyncIterator]();
    await groups.next();
    for (let round = 0; round < 3; round++) {
      await untilWaiting(clock);
      await clock.advance(1000);
    }
    await untilWaiting(clock);
    expect(warned.mock.calls).toEqual([
      [
        "The run waits for the trainer and cannot detect its progress: no version was announced, and the engine " +
          'describes its own as "", expected a whole number; announce each version, the first one with ' +
          "announcePolicy() when the run is started",
      ],
    ]);
    warned.mockRestore();
    await run.updatePolicy(2, () => Promise.resolve());
    expect((await groups.next()).done).toBe(false);
    await groups.return?.(undefined);
  });

  test("starts another group for each that is left out while it waits for the trainer", async () => {
    const source = createEndlessTasks(environment, {
      split: "test",
      taskIndexes: [0, 1, 2],
      seed: 1,
    });
    const run = start({
      source,
      admission: { concurrency: 2 },
      grouping: { size: 2, keep: ({ groupIndex }) => groupIndex !== 1 },
      staleness: { max: 0, beyond: "wait", groupsPerVersion: 2 },
    });
    run.announcePolicy(1);
    const seen: number[] = [];
    for await (const { groupIndex } of run) {
      seen.push(groupIndex);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual([0, 2]);
  });

  test("counts the trainer's lag by the groups of this start, regardless of earlier starts", async () => {
    const source = () =>
      createEndlessTasks(environment, { split: "test", taskIndexes: [0, 1], seed: 1 });
    const counts: number[] = [];
    for (let round = 0; round < 2; round++) {
      await using folder = await open();
      const run = start({
        source: source(),
        folder,
        admission: { concurrency: 2 },
        staleness: { max: 2, beyond: "wait", groupsPerVersion: 1 },
      });
      run.announcePolicy(1);
      let count = 0;
      for await (const _ of run) if (++count === 3) break;
      counts.push(count);
    }
    expect(counts).toEqual([3, 3]);
    const rows = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(new Set(rows).size).toBe(rows.length);
  });

  test("counts the trainer's versions from those of the groups that are delivered again", async () => {
    const options = {
      source: createTaskList(environment, { split: "test", taskIndexes: [0, 1, 2] }),
      admission: { concurrency: 1 },
      redeliver: true,
      staleness: { max: 0, beyond: "wait", groupsPerVersion: 1 },
    } as const;
    const seen: number[] = [];
    for (let round = 0; round < 2; round++) {
      await using folder = await open();
      const run = start({ ...options, folder });
      for await (const { groupIndex } of run) {
        seen.push(groupIndex);
        // It leaves with the first group, which it has not taken by that.
        if (round === 0) break;
        run.announcePolicy(seen.length);
      }
    }
    expect(seen).toEqual([0, 0, 1, 2]);
  });

  test("accepts a trainer that continues with older weights than those of waiting groups", async () => {
    let version = 9;
    const engine = lampEngine(undefined, () => String(version));
    const options = {
      engine,
      redeliver: true,
      admission: { concurrency: 1, ahead: 1 },
      grouping: { size: 1 },
      staleness: { max: 1, beyond: "drop" },
    } as const;
    {
      await using folder = await open();
      const run = start({ ...options, folder });
      run.announcePolicy(version);
      for await (const _ of run) break;
    }
    version = 6;
    await using folder = await open();
    const run = start({ ...options, folder });
    run.announcePolicy(version);
    const seen: [groupIndex: number, staleness: number][] = [];
    for await (const { groupIndex, staleness } of run) {
      seen.push([groupIndex, staleness!]);
      version += 1;
      await run.updatePolicy(version, () => Promise.resolve());
    }
    expect(seen.map(([groupIndex]) => groupIndex)).toEqual([0, 1, 2]);
    // Tokens of lost weights are no older than those of the current ones.
    expect(seen.every(([, staleness]) => staleness >= 0 && staleness <= 1)).toBe(true);
    expect(run.progress().groups).toEqual({ finished: 3, leftOut: 0 });
  });

  test.each(["drop", "wait"] as const)(
    "continues if a trainer returns to older weights within a start: %s",
    async (beyond) => {
      let version = 1;
      const engine = lampEngine(undefined, () => String(version));
      const source = createEndlessTasks(environment, {
        split: "test",
        taskIndexes: [0, 1, 2],
        seed: 1,
      });
      const run = start({
        engine,
        source,
        admission: { concurrency: 1, ahead: 1 },
        grouping: { size: 1 },
        staleness: { max: 1, beyond, groupsPerVersion: 1 },
      });
      run.announcePolicy(version);
      const versions: number[] = [];
      const stalenesses: number[] = [];
      const train = async (): Promise<void> => {
        for await (const { staleness } of run) {
          stalenesses.push(staleness!);
          versions.push(version);
          if (versions.length === 8) break;
          // The training since the second version failed.
          const next = versions.length === 5 ? 2 : version + 1;
          await run.updatePolicy(next, () => Promise.resolve(void (version = next)));
        }
      };
      const trained = train();
      for (let round = 0; round < 500 && versions.length < 8; round++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(versions).toEqual([1, 2, 3, 4, 5, 2, 3, 4]);
      await trained;
      expect(stalenesses.every((staleness) => staleness >= 0 && staleness <= 1)).toBe(true);
      expect(run.progress().groups.leftOut).toBe(0);
    },
  );

  test("delivers no group that became too old while it waited to be taken", async () => {
    await using folder = await open();
    const recordedSummary = async (): Promise<Record<string, unknown>> =>
      JSON.parse(await readFile(path.join(dir, "summary.json"), "utf8")) as Record<string, unknown>;
    const run = start({ staleness: { max: 1, beyond: "drop" }, folder });
    run.announcePolicy(1);
    await run.result;
    expect(run.progress().groups).toEqual({ finished: 3, leftOut: 0 });
    const atEnd = await recordedSummary();
    expect(atEnd["groups"]).toEqual({ finished: 3, leftOut: 0 });
    run.announcePolicy(3);
    expect(await all(run)).toEqual([]);
    expect(run.progress().groups).toEqual({ finished: 0, leftOut: 3 });
    // The run's own summary follows, and nothing else in it changes.
    expect(await recordedSummary()).toEqual({ ...atEnd, groups: { finished: 0, leftOut: 3 } });
  });

  test("samples nothing while one of several updates of the policy is running", async () => {
    let asked = 0;
    const run = start({ engine: lampEngine(() => void (asked += 1)) });
    const [one, other] = [withResolvers(), withResolvers()];
    const first = run.updatePolicy(2, async () => await one.promise);
    const second = run.updatePolicy(3, async () => await other.promise);
    one.resolve();
    await first;
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(0);
    // A pause that starts in the meantime outlasts the update.
    await run.pause();
    other.resolve();
    await second;
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(0);
    run.resume();
    expect(await all(run)).toHaveLength(3);
  });

  test.each(["hold", "interrupt", "finish"] as const)(
    "samples nothing after a failed update (%s) until it is resumed",
    async (mode) => {
      let asked = 0;
      const engine = lampEngine(
        () => void (asked += 1),
        () => "",
      );
      const run = start({ engine });
      run.announcePolicy(1);
      const broken = new Error("NCCL timed out");
      const updating = run.updatePolicy(2, () => Promise.reject(broken), mode);
      const failure = await updating.catch((error: unknown) => error as Error);
      expect(failure).toBeInstanceOf(UsageError);
      expect(failure).toMatchObject({
        message:
          "Cannot update the policy to version 2: NCCL timed out; nothing is sampled until resume(), or an " +
          "update that succeeds",
        cause: broken,
      });
      const before = asked;
      for (let round = 0; round < 50; round++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(asked).toBe(before);
      run.resume();
      const groups = await all(run);
      expect(groups.map(({ staleness }) => staleness)).toEqual([0, 0, 0]);
    },
  );

  test("samples after a failed update when the next one succeeds", async () => {
    let asked = 0;
    const run = start({ engine: lampEngine(() => void (asked += 1)) });
    const updating = run.updatePolicy(2, () => Promise.reject(new Error("no room")));
    await expect(updating).rejects.toThrow("no room");
    // An update that is refused for its version changes nothing.
    await expect(run.updatePolicy(1.5, () => Promise.resolve())).rejects.toThrow(
      "Cannot announce the policy's version 1.5: expected a whole number",
    );
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toBe(0);
    await run.updatePolicy(3, () => Promise.resolve());
    expect(await all(run)).toHaveLength(3);
  });

  test.each(["hold", "interrupt"] as const)(
    "an interruption samples nothing while the policy is paused (%s), and the next start resumes",
    async (mode) => {
      const half: string[] = [];
      let isChanging = false;
      const engine = lampEngine(({ requestId }) => void (isChanging && half.push(requestId)));
      const reached = withResolvers();
      const slow: Engine = {
        ...engine,
        async generate(request, options) {
          const generation = await engine.generate(request, options);
          if (turnOf(request) === 0) reached.resolve();
          return generation;
        },
      };
      {
        await using folder = await open();
        const run = start({ engine: slow, folder });
        await reached.promise;
        await run.pause(mode);
        for (let round = 0; round < 20; round++) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        isChanging = true;
        const { end, progress } = await run.interrupt();
        expect(half).toEqual([]);
        expect(end).toBe("interrupted");
        expect(progress.running).toBe(0);
        expect(progress.failures).toEqual({});
      }
      isChanging = false;
      await using folder = await open();
      const groups = await all(start({ engine, folder }));
      expect(groups.flatMap((group) => rewardsOf(group))).toEqual([1, 1, 1, 1, 1, 1]);
      expect(groups.flatMap(({ episodes }) => episodes.map(({ attempt }) => attempt))).toEqual([
        1, 1, 1, 1, 1, 1,
      ]);
    },
  );

  test("many concurrent policy calls cause no leak warning", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const source = createTaskList(environment, {
      split: "test",
      taskIndexes: Array.from({ length: 20 }, (_, index) => index),
    });
    await all(start({ source, admission: { concurrency: 40 } }));
    expect(warned).not.toHaveBeenCalled();
    warned.mockRestore();
  });

  test("ends its episodes as aborted, and the next start continues them after their last token", async () => {
    const reached = withResolvers();
    const never = new Promise<never>(() => {});
    const sampled: string[] = [];
    const engine = (isHeld: boolean): Engine => ({
      ...lampEngine(),
      async generate(request, options) {
        const turn = turnOf(request);
        sampled.push(`${request.sessionId}:${turn}`);
        if (!isHeld || turn === 0) return await lampEngine().generate(request, options);
        reached.resolve();
        await Promise.race([
          never,
          new Promise<void>((resolve) => {
            if (options?.cutShort?.aborted === true) resolve();
            options?.cutShort?.addEventListener("abort", () => resolve());
          }),
        ]);
        return await preparedEngine([
          {
            outputIds: characterIds("Goodbye!").slice(0, 3),
            finish: { type: "length" },
            pieces: [{ requestId: "r", tokenCount: 3, policyVersion: "1", finish: "abort" }],
          },
        ]).generate(request, options);
      },
    });
    const source = () => createTaskList(environment, { split: "test", taskIndexes: [0] });
    {
      await using folder = await open();
      const run = start({ engine: engine(true), source: source(), folder, grouping: { size: 1 } });
      await reached.promise;
      expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
    }
    sampled.length = 0;
    const rest: Engine = {
      ...lampEngine(),
      async generate(request, options) {
        sampled.push(`${request.sessionId}:${request.promptIds.length}`);
        const outputIds = characterIds("Goodbye!").slice(3);
        return await preparedEngine([
          {
            outputIds,
            pieces: [
              { requestId: "s", tokenCount: outputIds.length, policyVersion: "2", finish: "stop" },
            ],
          },
        ]).generate(request, options);
      },
    };
    await using folder = await open();
    const run = start({ engine: rest, source: source(), folder, grouping: { size: 1 } });
    const [group] = await all(run);
    expect(sampled).toHaveLength(1);
    expect(group!.episodes[0]).toMatchObject({ outcome: "completed", reward: 1 });
    expect(group!.episodes[0]!.turns.map(({ text }) => text)).toEqual([switchCall, "Goodbye!"]);
  });

  test("starts nothing after an interruption, even for attempts that waited for a place", async () => {
    let openCount = 0;
    const counted: Environment = {
      ...environment,
      open: (task, options) => ((openCount += 1), environment.open(task, options)),
    };
    const reached = withResolvers();
    const engine: Engine = {
      ...lampEngine(),
      async generate(request, options) {
        reached.resolve();
        await new Promise<void>((resolve) => {
          options?.cutShort?.addEventListener("abort", () => resolve(), { once: true });
        });
        return await lampEngine().generate(request, options);
      },
    };
    await using gate = createAdmissionGate({ concurrency: 1 });
    const run = start({
      setup: lampSetup({ environment: counted, engine }),
      admission: { concurrency: 4, gate },
    });
    await reached.promise;
    expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
    expect(openCount).toBe(1);
  });

  test("asks for a place before each attempt, the oldest groups first", async () => {
    const priorities: number[] = [];
    let free = 0;
    const gate = {
      async admit({ priority }: { readonly priority: number }) {
        priorities.push(priority);
        return () => void (free += 1);
      },
    };
    await all(start({ admission: { concurrency: 1, gate } }));
    expect(priorities).toEqual([0, 0, 1, 1, 2, 2]);
    expect(free).toBe(6);
  });

  test.each([
    ["heeds no signal", () => new Promise<never>(() => {})],
    [
      "ends its wait as Node's own functions do",
      async (signal: AbortSignal) => await sleep(2 ** 31 - 1, undefined, { signal }),
    ],
    [
      "ends its wait with the signal's reason",
      async (signal: AbortSignal) =>
        await new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        }),
    ],
  ])("an interrupted run waits for no gate that %s", async (_, wait) => {
    const asked = withResolvers();
    let askedCount = 0;
    const gate: AdmissionGate = {
      async admit({ signal }) {
        if (++askedCount === 4) asked.resolve();
        if (askedCount > 1) await wait(signal);
        return () => {};
      },
    };
    const run = start({ admission: { concurrency: 4, gate } });
    await asked.promise;
    expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
  });

  test("a place that is granted after the run was left is released", async () => {
    const [asked, open, left] = [withResolvers(), withResolvers(), withResolvers()];
    const gate: AdmissionGate = {
      async admit() {
        asked.resolve();
        await open.promise;
        return () => left.resolve();
      },
    };
    const run = start({ admission: { concurrency: 1, gate } });
    await asked.promise;
    await run.interrupt();
    open.resolve();
    await left.promise;
    expect.assertions(0);
  });

  test("an error of a gate ends the run", async () => {
    const gate: AdmissionGate = {
      admit: () => Promise.reject(new Error("no budget left")),
    };
    await expect(all(start({ admission: { concurrency: 1, gate } }))).rejects.toThrow(
      "no budget left",
    );
  });

  test("lets a player play its attempts, and reports writes and policy changes", async () => {
    const reported: string[] = [];
    const player: AttemptPlayer = {
      async play(assignment, setup, options) {
        const { rolloutId, attempt } = assignment;
        reported.push(`play ${rolloutId} ${attempt} of ${options.groupLeft}`);
        return await playHere.play(assignment, setup, options);
      },
      landed({ rolloutId, attempt }) {
        const isThere = readFileSync(path.join(dir, "episodes.jsonl"), "utf8").includes(
          `"rolloutId":"${rolloutId}"`,
        );
        reported.push(`landed ${rolloutId} ${attempt} ${isThere}`);
      },
      async pause(mode) {
        reported.push(`pause ${mode}`);
      },
      resume: () => void reported.push("resume"),
      announcePolicy: (version) => void reported.push(`announce ${version}`),
    };
    const engine = lampEngine(({ requestId }) =>
      requestId === "lamp/test/0#0:1:1;" ? outage : undefined,
    );
    await using folder = await open();
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    const run = start({ engine, player, folder, source, admission: { concurrency: 1 } });
    await run.updatePolicy(2, async () => void reported.push("update"), "interrupt");
    await run.pause();
    run.resume();
    const groups = await all(run);
    expect(groups[0]!.episodes.map(({ attempt }) => attempt)).toEqual([2, 1]);
    const ofPolicy = ["pause interrupt", "update", "announce 2", "resume", "pause hold", "resume"];
    expect(reported.filter((line) => !/^(play|landed)/.test(line))).toEqual(ofPolicy);
    expect(reported.filter((line) => /^(play|landed)/.test(line))).toEqual([
      "play lamp/test/0#0 1 of 2",
      // The failed attempt is played again.
      "landed lamp/test/0#0 1 false",
      "play lamp/test/0#0 2 of 2",
      "landed lamp/test/0#0 2 true",
      "play lamp/test/0#1 1 of 1",
      "landed lamp/test/0#1 1 true",
    ]);
  });

  describe("with a player of the caller", () => {
    const source = createTaskList(environment, { split: "test", taskIndexes: [0] });
    const grouping = { size: 1, attempts: 1 };

    /** Plays like this process, with a change to the episode. */
    function changing(change: (episode: Episode) => unknown): AttemptPlayer {
      return { play: async (...call) => change(await playHere.play(...call)) as Episode };
    }

    const failure = { party: "engine", code: "engine/timeout", message: "no answer" };

    test.each<[what: string, change: (episode: Episode) => unknown, why: string]>([
      ["nothing", () => undefined, "it is not an object"],
      [
        "another rollout's",
        (episode) => ({ ...episode, rolloutId: "lamp/test/0#1" }),
        'rolloutId is "lamp/test/0#1"',
      ],
      [
        "a fork, and it is none",
        (episode) => ({ ...episode, forkedFrom: { rolloutId: "lamp/test/1#0", turnIndex: 1 } }),
        "forkedFrom is",
      ],
      [
        "a failure that is scored",
        (episode) => ({ ...episode, outcome: "failed", stopReason: "failure", failure }),
        "an episode that nothing scored has a reward",
      ],
    ])("fails an attempt of which it returns %s", async (_, change, why) => {
      const [group] = await all(start({ source, grouping, player: changing(change) }));
      const [episode] = group!.episodes;
      expect(episode).toMatchObject({
        rolloutId: "lamp/test/0#0",
        outcome: "failed",
        segments: [],
        failure: { code: "internal/exception" },
      });
      expect(episode).not.toHaveProperty("reward");
      const problem =
        "Cannot play lamp/test/0#0 by the run's player: it returned a value that is not an episode of this rollout (";
      expect(episode!.failure?.message).toContain(problem + why);
    });

    test.each<[what: string, thrown: unknown, code: string, message: string]>([
      [
        "plainly",
        new TypeError("fetch failed"),
        "internal/exception",
        "Cannot play lamp/test/0#0 by the run's player: fetch failed",
      ],
      [
        "that a recording ends, where there is none",
        new PlaybackStop("it ends"),
        "internal/exception",
        "Cannot play lamp/test/0#0 by the run's player: it ends",
      ],
      [
        "what cannot be read",
        new Proxy(new Error("no"), {
          getPrototypeOf: () => {
            throw new TypeError("no");
          },
        }),
        "internal/exception",
        "Cannot play lamp/test/0#0 by the run's player: an object without a text",
      ],
      ["a failure", new RolloutError("user/gone", "they left"), "user/gone", "they left"],
    ])("fails an attempt at which it throws %s", async (_, thrown, code, message) => {
      await using folder = await open();
      // eslint-disable-next-line typescript/prefer-promise-reject-errors
      for (const play of [() => Promise.reject(thrown), () => throwIt(thrown)]) {
        const [group] = await all(start({ source, grouping, player: { play } }));
        expect(group!.episodes[0]).toMatchObject({ outcome: "failed", failure: { code, message } });
      }
      const { result } = start({
        source,
        grouping,
        folder,
        player: { play: () => throwIt(thrown) },
      });
      expect(await result).toMatchObject({ end: "finished" });
      expect(await readFile(path.join(dir, "events.jsonl"), "utf8")).toContain('"type":"trouble"');
    });

    function throwIt(thrown: unknown): never {
      throw thrown;
    }

    test("plays failed attempts again, with the size of their groups", async () => {
      const kept = new Map<string, Episode>();
      const player: AttemptPlayer = {
        play: async (assignment, setup, options) => {
          const episode = await playHere.play(assignment, setup, options);
          const other = kept.get(episode.groupId);
          kept.set(episode.groupId, episode);
          // The first play of each second attempt returns the first attempt's result.
          return assignment.attempt === 1 && other !== undefined ? other : episode;
        },
      };
      const groups = await all(start({ player, admission: { concurrency: 1 } }));
      expect(
        groups.map(({ episodes }) =>
          episodes.map(({ rolloutId, attempt }) => [rolloutId, attempt]),
        ),
      ).toEqual(
        [0, 1, 2].map((index) => [
          [`lamp/test/${index}#0`, 1],
          [`lamp/test/${index}#1`, 2],
        ]),
      );
    });

    test("ends by a UsageError of the player", async () => {
      const error = new UsageError("Cannot reach the cluster: no such host");
      const run = start({ source, grouping, player: { play: () => Promise.reject(error) } });
      await expect(run.result).rejects.toBe(error);
    });

    test("is not held up by a play that never answers: it is interrupted, or stopped", async () => {
      const time = createManualClock();
      const setup = { ...setupWith(lampEngine()), clock: createClock(time) };
      const leaving = defaultLimits.graceTimeoutMs;
      const { toolTimeoutMs, userTimeoutMs } = defaultLimits;
      const leaveMs = leaving + 3 * (toolTimeoutMs + userTimeoutMs);
      const signals: AbortSignal[] = [];
      const playing = [withResolvers(), withResolvers()];
      const player: AttemptPlayer = {
        play: async (_assignment, _setup, { signal }) => {
          playing[signals.push(signal) - 1]!.resolve();
          return await new Promise(() => {});
        },
      };
      {
        await using folder = await open();
        const run = start({ setup, source, grouping, folder, player });
        await playing[0]!.promise;
        const interrupted = run.interrupt();
        await time.untilSleeping(leaveMs);
        await time.advance(leaveMs);
        expect(await interrupted).toMatchObject({ end: "interrupted", progress: { finished: 0 } });
        expect(signals[0]!.aborted).toBe(true);
      }
      expect(await readFile(path.join(dir, "events.jsonl"), "utf8")).toContain(
        `Cannot leave lamp/test/0#0 with what the run's player has: no answer within ${leaveMs} ms of the ` +
          "interruption, expected its episode, aborted (a play() that does not heed options.interrupt?)",
      );
      const stop = new AbortController();
      const run = start({ setup, source, grouping, player, signal: stop.signal });
      await playing[1]!.promise;
      stop.abort(new Error("enough"));
      expect(await run.result).toMatchObject({ end: "interrupted" });
    });

    test("ignores events of a play that it does not wait for", async () => {
      let goOn = (): void => {};
      const player: AttemptPlayer = {
        play: async (assignment, setup, options) => {
          if (assignment.attempt === 2) {
            goOn();
            return await playHere.play(assignment, setup, options);
          }
          goOn = () => {
            setup.onTurn!({ engineMs: 77, environmentMs: 0, sampledTokenCount: 1 } as never);
            options.onInputs!({ inputs: [], times: [987_654_321] });
          };
          return await Promise.resolve(undefined as unknown as Episode);
        },
      };
      await using folder = await open();
      const run = start({ source, grouping: { size: 1 }, folder, player });
      const [group] = await all(run);
      expect(group!.episodes[0]).toMatchObject({ outcome: "completed", attempt: 2 });
      expect((await run.result).progress.spentMs.engine).toBe(0);
      const recorded = await readFile(path.join(dir, "recording.jsonl"), "utf8");
      expect(recorded).toContain('"attempt":2');
      expect(recorded).not.toContain("987654321");
    });

    test.each<[what: string, broken: (fail: () => never) => Partial<AttemptPlayer>, name: string]>([
      ["landed()", (landed) => ({ landed }), "report to the player that lamp/test/0#0 has landed"],
      ["pause()", (pause) => ({ pause }), "pause the player (hold)"],
      ["resume()", (resume) => ({ resume }), "let the player resume"],
      [
        "announcePolicy()",
        (announcePolicy) => ({ announcePolicy }),
        "announce version 2 of the policy to the player",
      ],
    ])("names errors of the player, at once or later: %s", async (_, broken, name) => {
      for (const fail of [fails, failsLater]) {
        const player = { ...playHere, ...broken(fail as () => never) };
        const run = start({ source, grouping, player });
        const refused = async (): Promise<void> => {
          await run.updatePolicy(2, async () => {});
          await run.result;
        };
        await expect(refused()).rejects.toThrow(
          new UsageError(`Cannot ${name}: the database is away`, { cause: away }),
        );
        await run.result.catch(() => {});
      }
    });
  });

  test("an interruption lets no call sample while the policy's weights change", async () => {
    const reported: string[] = [];
    const settled = withResolvers();
    const player: AttemptPlayer = {
      ...playHere,
      pause: async () => {
        reported.push("pause");
        await settled.promise;
      },
      resume: () => void reported.push("resume"),
    };
    const run = start({ player });
    const updated = run.updatePolicy(2, async () => {
      reported.push("update");
      await Promise.resolve();
    });
    const ended = run.interrupt();
    settled.resolve();
    await updated;
    await ended;
    expect(reported).toEqual(["pause", "update", "resume"]);
  });

  test("a refused start has changed nothing in its folder", async () => {
    await using folder = await open();
    expect(() => start({ folder, grouping: { size: 0 } })).toThrow("size is 0");
    expect(await all(start({ folder }))).toHaveLength(3);
  });

  test("names options that it cannot start with", () => {
    expect(() => start({ grouping: { size: 0 } })).toThrow(
      "Cannot start a run: size is 0, expected a number of at least 1",
    );
    expect(() => start({ admission: { concurrency: 1, ahead: 0 } })).toThrow(
      "Cannot start a run: ahead is 0, expected a number of at least 1",
    );
    expect(() => start({ maxFailuresInRow: 0 })).toThrow("maxFailuresInRow is 0");
    expect(() => start({ seed: 0.5 })).toThrow("seed is 0.5, expected a whole number");
    expect(() => start({ grouping: { size: 4, started: 2 } })).toThrow(
      "Cannot start 2 attempts in groups of 4: expected at least 4",
    );
    expect(() => start({ staleness: { max: 1, beyond: "wait" } })).toThrow("groupsPerVersion");
  });

  test.each([
    [{ source: [] }, "source is an empty list, expected an object with at()"],
    [{ player: () => {} }, "player is a function, expected an object with play()"],
    [{ player: {} }, "player is an object with no fields, expected an object with play()"],
    [{ grouping: undefined }, "grouping is nothing, expected an object"],
    [{ admission: 4 }, "admission is 4, expected an object"],
    [{ setup: null }, "setup is null, expected an object"],
  ])("names a missing part: %o", (parts, problem) => {
    const options = { source: { at: () => undefined }, setup: {}, grouping: {}, admission: {} };
    expect(() => startRun({ ...options, ...parts } as never)).toThrow(
      new UsageError(`Cannot start a run: ${problem}`),
    );
  });
});

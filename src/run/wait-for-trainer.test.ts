import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Engine, Generation } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { createClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { playHere, type AttemptPlayer } from "./attempt/attempt-player.ts";
import type { Episode } from "../episode/episode.ts";
import type { EpisodeGroup } from "./schedule/group.ts";
import { fiftyLamps, lampList, openLamps, startLamps, takeAll } from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { boundedSource, createEndlessTasks, type TaskSource } from "./schedule/task-source.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-wait-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** Waits for the trainer with each group. */
const oneByOne = (): Partial<StartRunOptions> => ({
  source: createEndlessTasks(fiftyLamps, { split: "test", taskIndexes: [0, 1, 2], seed: 1 }),
  grouping: { size: 1 },
  admission: { concurrency: 1 },
  staleness: { max: 0, beyond: "wait", groupsPerVersion: 1 },
});

/**
 * Returns an engine that names a version. `onTurn` may throw, or return a promise that the turn
 * waits for.
 */
function versionedEngine(
  version: () => string,
  onTurn: (turn: number) => unknown = () => undefined,
): Engine {
  const [stop] = createCharacterRenderer().stopTokenIds;
  return {
    ...preparedEngine([]),
    describe: async () => ({
      kind: "prepared",
      logprobConvention: "tempered",
      policyVersion: version(),
    }),
    async generate(request, options): Promise<Generation> {
      const turn = Math.floor((request.promptIds.filter((id) => id === stop).length - 2) / 2);
      await onTurn(turn);
      const outputIds = says(turn === 0 ? switchCall : "Goodbye!").outputIds!;
      const piece = { requestId: request.requestId, tokenCount: outputIds.length };
      return await preparedEngine([
        { outputIds, pieces: [{ ...piece, policyVersion: version(), finish: "stop" }] },
      ]).generate(request, options);
    },
  };
}

async function letThemWork(): Promise<void> {
  for (let round = 0; round < 500; round++) await new Promise((resolve) => setImmediate(resolve));
}

function versionsIn({ episodes }: EpisodeGroup): readonly string[] {
  const segments = episodes.flatMap((episode) => episode.segments);
  return [...new Set(segments.flatMap(({ policyVersions }) => policyVersions))].toSorted();
}

test("a resumed group does not count a version from before this start", async () => {
  {
    await using folder = await openLamps(dir);
    const reached = withResolvers();
    const stop = new AbortController();
    const engine = versionedEngine(
      () => "5",
      (turn) => {
        if (turn === 0) return undefined;
        reached.resolve();
        return new Promise(() => {});
      },
    );
    const run = startLamps({ ...oneByOne(), engine, folder, signal: stop.signal });
    await reached.promise;
    stop.abort();
    await run.result;
  }
  const clock = createManualClock();
  // The trainer has moved on in the meantime, and makes no further step.
  const engine = versionedEngine(() => "8");
  const setup = { ...lampSetup({ environment: fiftyLamps, engine }), clock: createClock(clock) };
  await using folder = await openLamps(dir);
  const run = startLamps({ ...oneByOne(), setup, folder });
  const groups = run[Symbol.asyncIterator]();
  const { value } = (await groups.next()) as { value: EpisodeGroup };
  expect(versionsIn(value)).toEqual(["", "5", "8"]);
  const next = groups.next();
  // It waits for the trainer.
  await clock.untilSleeping(1000);
  void run.interrupt();
  expect(await next).toEqual({ done: true, value: undefined });
});

test("samples of an earlier start alone are not a version of this one", async () => {
  {
    const scoring = withResolvers();
    const stop = new AbortController();
    const slow: Environment = {
      ...fiftyLamps,
      async open(...given) {
        const world = await fiftyLamps.open(...given);
        world.score = async () => {
          scoring.resolve();
          return await new Promise(() => {});
        };
        return world;
      },
    };
    await using folder = await openLamps(dir);
    const engine = versionedEngine(() => "5");
    const setup = lampSetup({ environment: slow, engine });
    const run = startLamps({ ...oneByOne(), setup, folder, signal: stop.signal });
    await scoring.promise;
    stop.abort();
    await run.result;
  }
  const clock = createManualClock();
  let version = "8";
  const engine = versionedEngine(() => version);
  const setup = { ...lampSetup({ environment: fiftyLamps, engine }), clock: createClock(clock) };
  await using folder = await openLamps(dir);
  const run = startLamps({ ...oneByOne(), setup, folder });
  const groups = run[Symbol.asyncIterator]();
  const { value } = (await groups.next()) as { value: EpisodeGroup };
  expect(versionsIn(value)).toEqual(["", "5"]);
  const next = groups.next();
  // The run asks the engine, but the trainer has made no step since the start, so it still waits.
  await clock.untilSleeping(1000);
  await clock.advance(1000);
  await clock.untilSleeping(1000);
  expect(run.progress().finished).toBe(1);
  version = "9";
  await clock.advance(1000);
  const { value: second } = (await next) as { value: EpisodeGroup };
  expect(versionsIn(second)).toEqual(["", "9"]);
  await run.interrupt();
});

test("an engine that returned with older weights than recorded is awaited by its own versions", async () => {
  {
    await using folder = await openLamps(dir);
    const reached = withResolvers();
    const stop = new AbortController();
    const engine = versionedEngine(
      () => "9",
      (turn) => {
        if (turn === 0) return undefined;
        reached.resolve();
        return new Promise(() => {});
      },
    );
    const run = startLamps({ ...oneByOne(), engine, folder, signal: stop.signal });
    await reached.promise;
    stop.abort();
    await run.result;
  }
  const clock = createManualClock();
  let version = "5";
  const engine = versionedEngine(() => version);
  const setup = { ...lampSetup({ environment: fiftyLamps, engine }), clock: createClock(clock) };
  await using folder = await openLamps(dir);
  const run = startLamps({ ...oneByOne(), setup, folder });
  const groups = run[Symbol.asyncIterator]();
  const { value } = (await groups.next()) as { value: EpisodeGroup };
  expect(versionsIn(value)).toEqual(["", "5", "9"]);
  const next = groups.next();
  await clock.untilSleeping(1000);
  version = "6";
  await clock.advance(1000);
  expect(versionsIn(((await next) as { value: EpisodeGroup }).value)).toEqual(["", "6"]);
  await run.interrupt();
});

test("a checkpoint that the trainer loads into an engine with other weights is not a step", async () => {
  const redeliver = true;
  {
    await using folder = await openLamps(dir);
    const ended = withResolvers();
    const engine = versionedEngine(() => "7");
    const onEpisode = (): void => ended.resolve();
    const run = startLamps({ ...oneByOne(), engine, folder, redeliver, onEpisode });
    run.announcePolicy(7);
    await ended.promise;
    await run.interrupt();
  }
  let version = "0";
  let requestCount = 0;
  const asked = withResolvers();
  const inner = versionedEngine(
    () => version,
    () => void requestCount++,
  );
  const engine: Engine = {
    ...inner,
    async describe(options) {
      asked.resolve();
      return await inner.describe(options);
    },
  };
  await using folder = await openLamps(dir);
  const run = startLamps({ ...oneByOne(), engine, folder, redeliver });
  await asked.promise;
  await letThemWork();
  const groups = run[Symbol.asyncIterator]();
  await run.updatePolicy(8, async () => void (version = "8"), "finish");
  const { value } = (await groups.next()) as { value: EpisodeGroup };
  expect(versionsIn(value)).toEqual(["", "7"]);
  const next = groups.next();
  await letThemWork();
  // It trains on that one.
  expect(requestCount).toBe(0);
  await run.updatePolicy(9, async () => void (version = "9"), "finish");
  expect(versionsIn(((await next) as { value: EpisodeGroup }).value)).toEqual(["", "9"]);
  await run.interrupt();
});

test("a first version of the engine before an announcement follows an unnamed one", async () => {
  const clock = createManualClock();
  let version = "default";
  const engine = versionedEngine(() => version);
  const setup = { ...lampSetup({ environment: fiftyLamps, engine }), clock: createClock(clock) };
  const run = startLamps({ ...oneByOne(), setup });
  const groups = run[Symbol.asyncIterator]();
  await groups.next();
  const next = groups.next();
  await clock.untilSleeping(1000);
  const [begun, ended] = [withResolvers(), withResolvers()];
  const updating = run.updatePolicy(1, async () => {
    version = "1";
    begun.resolve();
    await ended.promise;
  });
  await begun.promise;
  // The engine answers while other servers still have the earlier weights.
  await clock.advance(1000);
  await letThemWork();
  ended.resolve();
  await updating;
  expect(versionsIn(((await next) as { value: EpisodeGroup }).value)).toEqual(["", "1"]);
  await run.interrupt();
});

test("waiting groups continue with a version that the player was not notified of", async () => {
  const player: AttemptPlayer = {
    ...playHere,
    announcePolicy(version) {
      if (version === 2) throw new Error("the store is away");
    },
  };
  const run = startLamps({ ...oneByOne(), player });
  run.announcePolicy(1);
  const groups = run[Symbol.asyncIterator]();
  await groups.next();
  const next = groups.next();
  await letThemWork();
  expect(() => run.announcePolicy(2)).toThrow(
    "Cannot announce version 2 of the policy to the player: the store is away",
  );
  expect((await next).done).toBe(false);
  await groups.return?.(undefined);
});

test.each([
  { groupsPerVersion: 1, max: 0, announces: "at once", areDrained: false },
  { groupsPerVersion: 1, max: 0, announces: "at once", areDrained: true },
  { groupsPerVersion: 2, max: 1, announces: "a moment later", areDrained: false },
])(
  "a trainer that takes its episodes from onEpisode waits for none, with $groupsPerVersion groups a step, announced " +
    "$announces, the groups drained: $areDrained",
  async ({ groupsPerVersion, max, announces, areDrained }) => {
    const batch: Episode[] = [];
    let version = 1;
    const { source } = oneByOne();
    const run = startLamps({
      source: boundedSource(source!, 8),
      grouping: { size: 2 },
      staleness: { max, beyond: "wait", groupsPerVersion },
      onEpisode: (episode) => {
        if (batch.push(episode) < 2 * groupsPerVersion) return;
        batch.length = 0;
        version += 1;
        const next = version;
        if (announces === "at once") run.announcePolicy(next);
        else setImmediate(() => run.announcePolicy(next));
      },
    });
    run.announcePolicy(version);
    if (areDrained) await takeAll(run);
    expect(await run.result).toMatchObject({ end: "finished" });
    expect(version).toBe(1 + 8 / groupsPerVersion);
  },
);

test.each([
  { source: lampList(3), groupCount: 3 },
  { source: lampList(6), groupCount: 6 },
  { source: boundedSource(oneByOne().source!, 6), groupCount: 6 },
])(
  "a run of $groupCount groups ends although the trainer names no version after its last step",
  async ({ source, groupCount }) => {
    const run = startLamps({
      source,
      staleness: { max: 0, beyond: "wait", groupsPerVersion: 3 },
    });
    let version = 1;
    run.announcePolicy(version);
    let deliveredCount = 0;
    for await (const _ of run) {
      deliveredCount += 1;
      if (deliveredCount % 3 !== 0 || deliveredCount === groupCount) continue;
      version += 1;
      await run.updatePolicy(version, async () => {});
    }
    expect(deliveredCount).toBe(groupCount);
    expect(await run.result).toMatchObject({ end: "finished" });
  },
);

test("a run with groups that may all wait ends before they are taken", async () => {
  const run = startLamps({ admission: { concurrency: 4, ahead: 3 } });
  expect(await run.result).toMatchObject({ end: "finished" });
  expect(await takeAll(run)).toHaveLength(3);
});

test.each([true, false])(
  "a trainer that goes back in place of a step gets further groups, from onEpisode, the groups drained: %s",
  async (areDrained) => {
    let version = 10;
    let count = 0;
    const run = startLamps({
      source: boundedSource(oneByOne().source!, 12),
      grouping: { size: 1 },
      admission: { concurrency: 1 },
      staleness: { max: 1, beyond: "wait", groupsPerVersion: 1 },
      onEpisode: () => {
        count += 1;
        version += count % 2 === 0 ? -1 : 1;
        run.announcePolicy(version);
      },
    });
    run.announcePolicy(version);
    if (areDrained) await takeAll(run);
    expect(await run.result).toMatchObject({ end: "finished" });
    expect(count).toBe(12);
  },
);

test("a caller that writes a log in onEpisode gets no older groups, for any version numbers", async () => {
  let begunCount = 0;
  const own = oneByOne().source!;
  const source: TaskSource = {
    ...own,
    at: async (...given) => {
      begunCount += 1;
      return await own.at(...given);
    },
  };
  const run = startLamps({
    source,
    grouping: { size: 1 },
    staleness: { max: 1, beyond: "wait", groupsPerVersion: 2 },
    onEpisode: () => {},
  });
  let version = 0;
  run.announcePolicy(version);
  let deliveredCount = 0;
  const ahead: number[] = [];
  for await (const _ of run) {
    deliveredCount += 1;
    if (deliveredCount % 2 !== 0) continue;
    await letThemWork();
    version += 4;
    run.announcePolicy(version);
    await letThemWork();
    ahead.push(begunCount - deliveredCount);
    if (deliveredCount === 8) break;
  }
  expect(ahead).toEqual([4, 4, 4, 4]);
});

test.each([0, 1])(
  "a trainer that works on in onEpisode waits for none, however slowly its groups are drained, with max %d",
  async (max) => {
    let version = 1;
    const rounds = async (count: number): Promise<void> => {
      for (let round = 0; round < count; round++) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const run = startLamps({
      source: boundedSource(oneByOne().source!, 8),
      grouping: { size: 1 },
      admission: { concurrency: 1 },
      staleness: { max, beyond: "wait", groupsPerVersion: 1 },
      onEpisode: () => {
        void rounds(5).then(() => run.announcePolicy(++version));
      },
    });
    run.announcePolicy(version);
    for await (const _ of run) await rounds(50);
    expect(await run.result).toMatchObject({ end: "finished" });
    expect(version).toBe(9);
  },
);

test.each([1, 3])(
  "groups of an earlier start are trained like those of this one, with max %d",
  async (max) => {
    const source = (count: number): TaskSource => boundedSource(oneByOne().source!, count);
    {
      await using folder = await openLamps(dir);
      const run = startLamps({ source: source(4), grouping: { size: 1 }, folder, redeliver: true });
      await run.result;
    }
    let version = 1;
    await using folder = await openLamps(dir);
    const run = startLamps({
      source: source(12),
      grouping: { size: 1 },
      folder,
      redeliver: true,
      staleness: { max, beyond: "wait", groupsPerVersion: 1 },
      onEpisode: () => run.announcePolicy(version),
    });
    run.announcePolicy(version);
    let deliveredCount = 0;
    for await (const _ of run) {
      deliveredCount += 1;
      await letThemWork();
      run.announcePolicy(++version);
    }
    expect(deliveredCount).toBe(12);
  },
);

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { RolloutError } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { AttemptPlayer, AttemptPlayOptions } from "./attempt/attempt-player.ts";
import { faultyFiles } from "./faulty-files.fixture.ts";
import { diskFiles, type Files } from "./disk/files.ts";
import {
  fiftyLamps,
  lampList,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { lampSetup } from "./lamp-run.fixture.ts";
import type { LiveRun } from "./live-run.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { boundedSource, createEndlessTasks, type TaskSource } from "./schedule/task-source.ts";
import { createPushedTasks } from "./schedule/pushed-tasks.ts";
import { createTaskStream } from "./schedule/streamed-tasks.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-run-end-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** As axios ends a cancelled request: with neither the signal's reason nor an `AbortError`. */
class CanceledError extends Error {
  override readonly name = "CanceledError";
}

/** Rejects when the signal aborts. */
async function rejectsWhen(signal: AbortSignal, thrown: () => unknown): Promise<never> {
  return await new Promise<never>((_, reject) => {
    const onAbort = (): void => reject(thrown());
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}

const ways: readonly (readonly [string, (signal: AbortSignal) => unknown])[] = [
  ["the signal's reason", (signal) => signal.reason as unknown],
  ["an AbortError", () => new DOMException("aborted", "AbortError")],
  ["an error of its own", () => new CanceledError("canceled")],
  [
    "what cannot be read",
    () =>
      new Proxy(new Error("no"), {
        getPrototypeOf: () => {
          throw new TypeError("no");
        },
      }),
  ],
];

/** Returns the end that the folder's events record. */
async function endInFolder(): Promise<unknown> {
  const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
  const last = events.trimEnd().split("\n").at(-1)!;
  const { type, end } = JSON.parse(last) as { readonly type: string; readonly end?: string };
  return [type, end, (await readdir(dir)).includes("summary.json")];
}

describe("a run that failures in a row have stopped", () => {
  /** Lamp 0 fails while lamp 1, which ends well, is being written: that is done when the run has stopped. */
  async function play(more: Partial<StartRunOptions> = {}) {
    const [writing, stopped] = [withResolvers(), withResolvers()];
    const files: Files = {
      ...diskFiles,
      open: async (name, mode) => {
        const file = await diskFiles.open(name, mode);
        if (path.basename(name) !== "samples.jsonl") return file;
        const write: typeof file.write = async (bytes, position) => {
          writing.resolve();
          await stopped.promise;
          return await file.write(bytes, position);
        };
        return Object.assign(Object.create(file) as typeof file, { write });
      },
    };
    const environment: Environment = {
      ...fiftyLamps,
      open: async (task, options) => {
        if (task.index !== 0) return await fiftyLamps.open(task, options);
        await writing.promise;
        throw new Error("the database is away");
      },
    };
    await using folder = await openLamps(dir, { files });
    const run = startLamps({
      setup: lampSetup({ environment, engine: switchingEngine() }),
      folder,
      maxFailuresInRow: 1,
      grouping: { size: 1, attempts: 1 },
      admission: { concurrency: 2 },
      ...more,
      onEpisode: (episode) => {
        more.onEpisode?.(episode);
        if (episode.outcome === "failed") stopped.resolve();
      },
    });
    const groups = await takeAll(run);
    expect(groups.map(({ episodes }) => episodes[0]!.outcome)).toEqual(["failed", "completed"]);
    return await run.result;
  }

  test("reports it, even if other episodes succeed after the last failure", async () => {
    expect(await play()).toMatchObject({ end: "too-many-failures", progress: { finished: 2 } });
    expect(await endInFolder()).toEqual(["run-ended", "too-many-failures", true]);
  });

  test("reports it if it is stopped from outside after that", async () => {
    const stop = new AbortController();
    const { end } = await play({ signal: stop.signal, onEpisode: () => stop.abort() });
    expect(end).toBe("too-many-failures");
  });

  test("reports an interruption if that came first", async () => {
    let run: LiveRun | undefined;
    const environment: Environment = {
      ...fiftyLamps,
      open: () => {
        void run!.interrupt();
        throw new Error("the database is away");
      },
    };
    run = startLamps({
      setup: lampSetup({ environment, engine: switchingEngine() }),
      maxFailuresInRow: 1,
      grouping: { size: 1, attempts: 1 },
      admission: { concurrency: 1 },
    });
    expect(await run.result).toMatchObject({
      end: "interrupted",
      progress: { outcomes: { failed: 1 } },
    });
  });

  describe("counts", () => {
    /** Lamps 0 and 2 are broken. */
    const environment: Environment = {
      ...fiftyLamps,
      open: async (task, options) => {
        if (task.index % 2 === 0) throw new Error("this lamp's database is broken");
        return await fiftyLamps.open(task, options);
      },
    };
    const play = async (options: Partial<StartRunOptions> & { readonly engine?: Engine }) => {
      const { engine = switchingEngine(), ...more } = options;
      const run = startLamps({
        setup: lampSetup({ environment, engine }),
        maxFailuresInRow: 2,
        grouping: { size: 4, attempts: 1 },
        admission: { concurrency: 1 },
        ...more,
      });
      const { length } = await takeAll(run);
      const { end, progress } = await run.result;
      const { completed, failed } = progress.outcomes;
      return { end, groups: length, completed, failed };
    };

    test("one broken task once, however large its group and however slow the others", async () => {
      const broken = withResolvers();
      let failedCount = 0;
      const played = await play({
        source: lampList(2),
        admission: { concurrency: 8 },
        engine: switchingEngine(async () => await broken.promise),
        onEpisode: ({ outcome }) => {
          if (outcome === "failed" && ++failedCount === 4) broken.resolve();
        },
      });
      expect(played).toEqual({ end: "finished", groups: 2, completed: 4, failed: 4 });
    });

    test("broken tasks without a success in between, and no others", async () => {
      // The first and the third lamp, with the second one between them.
      const played = await play({ source: lampList(3) });
      expect(played).toEqual({ end: "finished", groups: 3, completed: 4, failed: 8 });
    });

    test("groups without end of which each is of a broken task", async () => {
      const scope = { split: "test", taskIndexes: [0], seed: 0 };
      const played = await play({
        source: createEndlessTasks(environment, scope),
        maxFailuresInRow: 3,
      });
      expect(played).toEqual({
        end: "too-many-failures",
        groups: 2,
        completed: 0,
        failed: 2 * 4 + 1,
      });
    });

    test("each failure of the engine", async () => {
      const away = new RolloutError("engine/unreachable", "no connection");
      const played = await play({
        source: createTaskStream([fiftyLamps.task("test", 1)]),
        maxFailuresInRow: 3,
        engine: switchingEngine(() => away),
      });
      expect(played).toEqual({ end: "too-many-failures", groups: 0, completed: 0, failed: 3 });
    });

    test("failures of the engine together with those of a broken task", async () => {
      const away = new RolloutError("engine/unreachable", "no connection");
      const played = await play({
        source: lampList(2),
        maxFailuresInRow: 3,
        engine: switchingEngine(() => away),
      });
      expect(played).toEqual({ end: "too-many-failures", groups: 1, completed: 0, failed: 4 + 2 });
    });
  });
});

describe("an interrupted play that ends by", () => {
  const players: readonly (readonly [
    string,
    (play: AttemptPlayer["play"]) => Partial<StartRunOptions>,
  ])[] = [
    ["player.play", (play) => ({ player: { play } })],
    [
      "setup.play",
      (play) => ({
        setup: {
          ...lampSetup({ environment: fiftyLamps, engine: switchingEngine() }),
          play: async (...[assignment, setup, options]) =>
            await play(assignment, setup, options as AttemptPlayOptions),
        },
      }),
    ],
  ];
  const cases = ways.flatMap(([what, thrown]) =>
    players.map(([who, by]) => [what, who, thrown, by] as const),
  );

  test.each(cases)("%s has not failed (%s)", async (what, _, thrown, by) => {
    const begun = withResolvers();
    let count = 0;
    const waiting = by(async (_assignment, _setup, { interrupt }) => {
      count += 1;
      if (count === 4) begun.resolve();
      return await rejectsWhen(interrupt!, () => thrown(interrupt!));
    });
    {
      await using folder = await openLamps(dir);
      const run = startLamps({ ...waiting, folder });
      await begun.promise;
      const { end, progress } = await run.interrupt();
      expect([end, progress.finished, progress.retried, progress.failures]).toEqual([
        "interrupted",
        0,
        0,
        {},
      ]);
    }
    expect(count).toBe(4);
    // The error appears in the events.
    const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
    const isReported = !["the signal's reason", "an AbortError"].includes(what);
    expect(events.match(/"type":"trouble"/g)?.length ?? 0).toBe(isReported ? 4 : 0);
    await using folder = await openLamps(dir);
    expect(folder.finished).toEqual([]);
    const groups = await takeAll(startLamps({ folder }));
    expect(groups.flatMap(({ episodes }) => episodes.map(({ reward }) => reward))).toEqual([
      1, 1, 1, 1, 1, 1,
    ]);
  });

  test.each(players)("an error without an episode is not a failure (%s)", async (_, by) => {
    const begun = withResolvers();
    const silent = by(async (_assignment, _setup, { interrupt }) => {
      begun.resolve();
      return await rejectsWhen(interrupt!, () => undefined).catch(() => undefined as never);
    });
    const run = startLamps({ ...silent, admission: { concurrency: 1 } });
    await begun.promise;
    expect(await run.interrupt()).toMatchObject({ end: "interrupted", progress: { finished: 0 } });
  });

  test("a failure of its own is not played again in this start", async () => {
    let run: LiveRun | undefined;
    let openCount = 0;
    const environment: Environment = {
      ...fiftyLamps,
      open: () => {
        openCount += 1;
        void run!.interrupt();
        throw new Error("the database is away");
      },
    };
    {
      await using folder = await openLamps(dir);
      const setup = lampSetup({ environment, engine: switchingEngine() });
      run = startLamps({ setup, folder, admission: { concurrency: 1 } });
      expect(await run.result).toMatchObject({ end: "interrupted", progress: { finished: 0 } });
    }
    expect(openCount).toBe(1);
    await using folder = await openLamps(dir);
    const groups = await takeAll(startLamps({ folder }));
    const attempts = groups.flatMap(({ episodes }) => episodes.map(({ attempt }) => attempt));
    expect(attempts).toEqual([2, 1, 1, 1, 1, 1]);
  });
});

describe("a source that is stopped ends its wait by", () => {
  /** Gives a task, and waits for another one. */
  function waitingSource(thrown: (signal: AbortSignal) => unknown) {
    const asked = withResolvers();
    const source: TaskSource = {
      at: async (groupIndex, { signal }) => {
        if (groupIndex === 0) return { task: fiftyLamps.task("test", 0) };
        asked.resolve();
        return await rejectsWhen(signal, () => thrown(signal));
      },
    };
    return { source, asked: asked.promise };
  }

  test.each(ways)("%s: the run ends in order", async (_, thrown) => {
    const { source, asked } = waitingSource(thrown);
    {
      await using folder = await openLamps(dir, { format: "slime" });
      const run = startLamps({ source, folder, grouping: { size: 1 } });
      await asked;
      await run.interrupt();
      expect(await run.result).toMatchObject({ end: "interrupted" });
    }
    expect(await endInFolder()).toEqual(["run-ended", "interrupted", true]);
    expect(await readdir(dir)).toContain("samples.slime.jsonl");
  });

  test.each(ways)("%s: a caller that leaves the loop gets no error", async (_, thrown) => {
    const { source, asked } = waitingSource(thrown);
    let count = 0;
    for await (const _group of startLamps({ source, grouping: { size: 1 } })) {
      count += 1;
      await asked;
      break;
    }
    expect(count).toBe(1);
  });

  test("giving no task: the run ends in order", async () => {
    const asked = withResolvers();
    const source: TaskSource = {
      at: async (_groupIndex, { signal }) => {
        asked.resolve();
        return await rejectsWhen(signal, () => undefined).catch(() => null as never);
      },
    };
    const run = startLamps({ source });
    await asked.promise;
    expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
  });
});

describe("a source that is stopped ends its wait by giving no task", () => {
  /** Gives a task, and waits with the next one until it is stopped. */
  function endingSource(length?: number) {
    const asked = withResolvers();
    const source: TaskSource = {
      ...(length !== undefined && { length }),
      at: async (groupIndex, { signal }) => {
        if (groupIndex === 0) return { task: fiftyLamps.task("test", 0) };
        asked.resolve();
        return await rejectsWhen(signal, () => undefined).catch(() => undefined);
      },
    };
    return { source, asked: asked.promise };
  }

  test.each([undefined, 10])("and is not at its end by that: %s groups planned", async (length) => {
    {
      const { source, asked } = endingSource(length);
      await using folder = await openLamps(dir, { format: "slime" });
      const run = startLamps({ source, folder, grouping: { size: 1 } });
      for await (const _group of run) {
        await asked;
        void run.interrupt();
      }
      expect(await run.result).toMatchObject({ end: "interrupted", progress: { finished: 1 } });
    }
    expect(await endInFolder()).toEqual(["run-ended", "interrupted", true]);
    await using folder = await openLamps(dir, { format: "slime" });
    const source = createTaskStream([0, 1].map((index) => fiftyLamps.task("test", index)));
    const run = startLamps({ source, folder, grouping: { size: 1 } });
    expect(await run.result).toMatchObject({ end: "finished", progress: { finished: 2 } });
  });
});

describe("an engine that ends its call when it is cut short, like fetch()", () => {
  /** Answers first turns, and ends others by the reason of `cutShort`. */
  function fetchingEngine(turns: readonly number[]) {
    const isCutAt = new Set(turns);
    const inner = switchingEngine();
    const asked: string[] = [];
    const news: (() => void)[] = [];
    const engine: Engine = {
      ...inner,
      async generate(request, options) {
        asked.push(request.requestId);
        for (const tell of news) tell();
        const turn = Number(/:(\d+);$/.exec(request.requestId)?.[1]);
        if (isCutAt.has(turn)) {
          const { cutShort } = options!;
          await rejectsWhen(cutShort!, () => cutShort!.reason);
        }
        return await inner.generate(request, options);
      },
    };
    const untilAsked = async (count: number): Promise<void> => {
      await new Promise<void>((resolve) => {
        news.push(() => {
          if (asked.length === count) resolve();
        });
      });
    };
    return { engine, asked, untilAsked };
  }

  test.each([1, 2])("loses that turn alone to an interruption, of %i plays", async (attempts) => {
    const options = { source: lampList(1), grouping: { size: 2, attempts } };
    {
      const { engine, untilAsked } = fetchingEngine([1]);
      await using folder = await openLamps(dir);
      const waiting = untilAsked(4);
      const run = startLamps({ ...options, folder, engine });
      await waiting;
      expect(await run.interrupt()).toMatchObject({
        end: "interrupted",
        progress: { finished: 0, retried: 0, failures: {} },
      });
    }
    await using folder = await openLamps(dir);
    const { engine, asked } = fetchingEngine([]);
    const [group] = await takeAll(startLamps({ ...options, folder, engine }));
    expect(asked.toSorted()).toEqual(["lamp/test/0#0:1.2:1;", "lamp/test/0#1:1.2:1;"]);
    expect(group!.episodes.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ["completed", 1],
      ["completed", 1],
    ]);
  });

  test("is asked again after an update of the weights that interrupts", async () => {
    const { engine, asked, untilAsked } = fetchingEngine([1]);
    const waiting = untilAsked(4);
    const grouping = { size: 2, attempts: 1 };
    const run = startLamps({ source: lampList(1), grouping, engine });
    await waiting;
    await run.updatePolicy(2, async () => {}, "interrupt");
    const [group] = await takeAll(run);
    expect(group!.episodes.map(({ outcome }) => outcome)).toEqual(["completed", "completed"]);
    expect(asked.slice(4).toSorted()).toEqual(["lamp/test/0#0:1:1;w1;", "lamp/test/0#1:1:1;w1;"]);
  });
});

describe("a run of which far more was planned than played", () => {
  const groups = 10 ** 12;
  const source = (): TaskSource =>
    boundedSource(
      createEndlessTasks(fiftyLamps, { split: "test", taskIndexes: [0, 1], seed: 0 }),
      groups,
    );

  test("ends without its sampled tokens", async () => {
    await using folder = await openLamps(dir, { format: "slime" });
    const run = startLamps({ source: source(), folder, admission: { concurrency: 2 } });
    let taken = 0;
    for await (const _group of run) if (++taken === 2) void run.interrupt();
    const { end, slime } = await run.result;
    expect([end, slime!.groups, slime!.rows]).toEqual(["interrupted", taken, 2 * taken]);
    expect(slime!.leftOut).toEqual({ unfinished: groups - taken });
  });

  test("ends as finished if its source ends before", async () => {
    const pushed = createPushedTasks();
    pushed.push({ task: fiftyLamps.task("test", 3) });
    pushed.end();
    await using folder = await openLamps(dir, { format: "slime" });
    const run = startLamps({ source: boundedSource(pushed, groups), folder });
    expect(await run.result).toMatchObject({ end: "finished", slime: { groups: 1, rows: 2 } });
    expect((await run.result).slime).not.toHaveProperty("leftOut");
  });
});

test("slime is given no group that still expects a further attempt", async () => {
  const stop = new AbortController();
  {
    await using folder = await openLamps(dir, { format: "slime" });
    const run = startLamps({
      folder,
      signal: stop.signal,
      admission: { concurrency: 1 },
      onEpisode: () => stop.abort(),
    });
    expect(await run.result).toMatchObject({ end: "interrupted", progress: { finished: 1 } });
  }
  stop.abort();
  await using folder = await openLamps(dir, { format: "slime" });
  const { slime } = await startLamps({ folder, signal: stop.signal }).result;
  expect(slime).toEqual({ groups: 0, rows: 0, leftOut: { unfinished: 3 } });
});

test("a run ends with the error of the disk, even if a listener throws then", async () => {
  let isFull = false;
  const files = faultyFiles(({ operation, path: name }) => {
    if (operation !== "write" || !name.endsWith("episodes.jsonl")) return undefined;
    isFull = true;
    return { type: "fail", code: "ENOSPC" };
  });
  await using folder = await openLamps(dir, { files });
  const run = startLamps({
    folder,
    admission: { concurrency: 1 },
    onProgress: () => {
      if (isFull) throw new Error("the screen is closed");
    },
  });
  await expect(run.result).rejects.toThrow(/^Cannot write .*episodes\.jsonl: ENOSPC/);
});

describe("the time that a run took", () => {
  /** Plays one lamp with an engine that reports each call. */
  async function elapsed(
    onRequest: () => void,
    more: Pick<StartRunOptions["setup"], "clock" | "now">,
  ) {
    const engine = switchingEngine(onRequest);
    const setup = { ...lampSetup({ environment: fiftyLamps, engine }), ...more };
    const run = startLamps({ setup, source: lampList(1), grouping: { size: 1 } });
    const { elapsedMs, sampledTokensPerSecond, sampledTokenCount } = (await run.result).progress;
    return { elapsedMs, perSecond: sampledTokensPerSecond, sampledTokenCount };
  }

  test("follows a clock that is never set", async () => {
    let nowMs = 7;
    const clock = createClock({ now: () => nowMs });
    const took = await elapsed(() => (nowMs += 2000), { clock, now: Date.now });
    expect(took.elapsedMs).toBe(4000);
    expect(took.perSecond).toBe(took.sampledTokenCount / 4);
  });

  test("is never negative", async () => {
    let nowMs = 9_000_000;
    const took = await elapsed(() => (nowMs -= 3_600_000), { now: () => nowMs });
    expect([took.elapsedMs, took.perSecond]).toEqual([0, 0]);
  });
});

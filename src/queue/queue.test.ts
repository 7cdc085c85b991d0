import { readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { Agent } from "../agent/agent.ts";
import type { Environment } from "../environment/environment.ts";
import type { Episode } from "../episode/episode.ts";
import { turnsIn } from "../episode/inputs/input.ts";
import { rendererOf } from "../episode/renderer-of.ts";
import { UsageError } from "../errors.ts";
import { Redactor } from "../secrets/redactor.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { EpisodeGroup } from "../run/schedule/group.ts";
import type { TaskSource } from "../run/schedule/task-source.ts";
import {
  lampEngine,
  lampSource,
  longLampSetup,
  QueueBench,
  turnOf,
  until,
} from "./queue.fixture.ts";
import { jobIdOf } from "./job/attempt-job.ts";
import type { SharedPlace } from "./place/shared-place.ts";
import { startProxy, missingStore } from "./store/store-server.fixture.ts";

async function all(groups: AsyncIterable<EpisodeGroup>): Promise<readonly EpisodeGroup[]> {
  const found: EpisodeGroup[] = [];
  for await (const group of groups) found.push(group);
  return found;
}

function idsIn(lines: string): readonly string[] {
  return lines
    .split("\n")
    .slice(0, -1)
    .map((line) => (JSON.parse(line) as { rolloutId: string }).rolloutId)
    .toSorted();
}

/** Two attempts at each of `count` lamps. */
function lampIds(count: number): readonly string[] {
  return Array.from(
    { length: count * 2 },
    (_, i) => `lamp/test/${Math.floor(i / 2)}#${i % 2}`,
  ).toSorted();
}

/** The second of two attempts at workers, a branch of the first from its second turn. */
async function playBranch(bench: QueueBench): Promise<Episode> {
  const handOut = await bench.handOut();
  const run = bench.start(1, {
    player: handOut.player(),
    grouping: { size: 2, branchAt: [1], attempts: 1 },
  });
  const [group] = await all(run);
  const [trunk, branch] = group!.episodes;
  expect(trunk!.outcome).toBe("completed");
  return branch!;
}

describe.skipIf(missingStore !== undefined)("a run whose attempts are handed out", () => {
  test("writes the same rows as one process, to the byte, and leaves no data in the store", async () => {
    await using bench = await QueueBench.open();
    const plain = await bench.folder("plain");
    await all(bench.start(20, { folder: plain }));
    await bench.worker();
    await bench.worker();
    const handOut = await bench.handOut();
    const folder = await bench.folder("handed-out");
    const run = bench.start(20, { folder, player: handOut.player() });
    const groups = await all(run);
    expect(groups).toHaveLength(20);
    expect(await run.result).toMatchObject({
      end: "finished",
      progress: { finished: 40, turnCount: 80 },
    });
    for (const file of ["samples.jsonl"]) {
      expect(await bench.text("handed-out", file)).toBe(await bench.text("plain", file));
    }
    // Inputs arrive with the results, so the written run can be replayed.
    const recorded = await bench.text("handed-out", "recording.jsonl");
    expect(recorded.match(/"type":"inputs"/g)?.length).toBeGreaterThanOrEqual(80);
    await handOut[Symbol.asyncDispose]();
    const store = await bench.store();
    await until(async () => (await store.redis.keys("turnwright:*run-test-run*")).length === 0);
    expect(await store.redis.hlen("turnwright:runs")).toBe(0);
  });

  test("shows the policy the date with which the run began, whenever its workers were started", async () => {
    await using bench = await QueueBench.open();
    const dates: (Date | undefined)[] = [];
    const setup = longLampSetup();
    const renderer = rendererOf(setup);
    const noting: typeof renderer = {
      ...renderer,
      prompt: async (conversation) => {
        dates.push(conversation.now);
        return await renderer.prompt(conversation);
      },
    };
    await bench.worker({ setup: { ...setup, renderer: noting, promptTime: new Date(0) } });
    const handOut = await bench.handOut();
    const folder = await bench.folder("run");
    await all(bench.start(1, { folder, player: handOut.player() }));
    expect(folder.manifest.promptTime).toBe("2026-11-23T10:05:00.000");
    const begun = new Date(2026, 10, 23, 10, 5);
    expect(dates).toEqual([begun, begun]);
  });

  test("does not start in a database that does not exist, because the store would use another one", async () => {
    await using bench = await QueueBench.open();
    await bench.store(`${bench.server.url}/15`);
    await expect(bench.store(`${bench.server.url}/99`)).rejects.toThrow(
      /^Cannot reach the queue's store redis:\/\/127\.0\.0\.1:\d+: ERR DB index is out of range$/,
    );
  });

  test("continues from a lost worker's recording, and reports it", async () => {
    await using bench = await QueueBench.open();
    await using proxy = await startProxy(bench.server);
    const place = await bench.place();
    const reached = withResolvers();
    const hung = withResolvers();
    const asked: string[] = [];
    // The first worker comes as far as its second turn.
    await bench.worker({
      url: proxy.url,
      place,
      concurrency: 1,
      leaseMs: 3_000,
      engine: lampEngine(async (request, turn) => {
        asked.push(`one ${turn}`);
        if (turn === 0) return;
        reached.resolve();
        await hung.promise;
      }),
    });
    const handOut = await bench.handOut({ place });
    const folder = await bench.folder("run");
    const run = bench.start(1, { folder, player: handOut.player(), admission: { concurrency: 1 } });
    await reached.promise;
    // Other workers continue from the recording in the shared place.
    await until(async () =>
      (await bench.sharedTexts()).some((text) => text.includes("generation")),
    );
    proxy.swallow();
    await bench.worker({
      place,
      concurrency: 4,
      engine: lampEngine((_, turn) => void asked.push(`two ${turn}`)),
    });
    const [group] = await all(run);
    hung.resolve();
    expect(group!.episodes.map(({ reward }) => reward)).toEqual([1, 1]);
    // The first turn of the first attempt was not sampled again; the second attempt is another's whole.
    expect(asked).toEqual(["one 0", "one 1", "two 1", "two 0", "two 1"]);
    expect(bench.news).toContainEqual(
      expect.objectContaining({
        type: "attempt-played-again",
        rolloutId: "lamp/test/0#0",
        attempt: 1,
        from: "recording",
        recordedTurns: 1,
      }),
    );
  });

  test("reports no lost workers if the shared place holds files of an earlier start", async () => {
    await using bench = await QueueBench.open();
    const place = await bench.place();
    const id = jobIdOf({ rolloutId: "lamp/test/0#0", attempt: 1 });
    const left = await place.recordings!.begin(`recordings/test-run/${id}`);
    await left.append(`${JSON.stringify({ recording: 1, base: "other" })}\n`);
    await bench.worker({ place });
    const handOut = await bench.handOut({ place });
    await all(bench.start(1, { player: handOut.player() }));
    expect(bench.news.filter(({ type }) => type === "attempt-played-again")).toEqual([]);
    // It is gone with the attempt's own.
    await until(
      async () => (await readdir(path.join(bench.dir, "shared/recordings/test-run"))).length === 0,
    );
  });

  test("starts the attempt again without a recording, and ignores a slow worker's result", async () => {
    await using bench = await QueueBench.open();
    await using proxy = await startProxy(bench.server);
    const reached = withResolvers();
    const slow = withResolvers();
    await bench.worker({
      url: proxy.url,
      concurrency: 1,
      leaseMs: 3_000,
      engine: lampEngine(async (_, turn) => {
        if (turn === 0) return;
        reached.resolve();
        await slow.promise;
        return "Goodbye from the dead!";
      }),
    });
    const handOut = await bench.handOut();
    const folder = await bench.folder("run");
    const player = handOut.player();
    const run = bench.start(1, { folder, player, admission: { concurrency: 1 } });
    await reached.promise;
    proxy.cut();
    await bench.worker();
    await all(run);
    proxy.mend();
    slow.resolve();
    await until(() => bench.notes.some((note) => note.includes("reaches the queue's store again")));
    expect(bench.notes.join("\n")).toContain(
      "lamp/test/0#0 is not this worker's any more: what it played of it is left out",
    );
    expect(await bench.text("run", "episodes.jsonl")).not.toContain("from the dead");
    expect(idsIn(await bench.text("run", "episodes.jsonl"))).toEqual(lampIds(1));
    expect(bench.news).toContainEqual(
      expect.objectContaining({ type: "attempt-played-again", from: "anew", recordedTurns: 0 }),
    );
  });

  test("survives a store that is killed, with its data and without", async () => {
    await using bench = await QueueBench.open();
    const gate = withResolvers();
    let begun = 0;
    const engine = lampEngine(async () => {
      begun += 1;
      await gate.promise;
    });
    await bench.worker({ engine });
    await bench.worker({ engine });
    const handOut = await bench.handOut();
    const folder = await bench.folder("run");
    const run = bench.start(20, { folder, player: handOut.player() });
    await until(() => begun >= 8);
    await bench.server.restart({ keepsData: false });
    await until(() => begun >= 9);
    await bench.server.restart({ keepsData: true });
    gate.resolve();
    expect(await all(run)).toHaveLength(20);
    expect(idsIn(await bench.text("run", "episodes.jsonl"))).toEqual(lampIds(20));
  });

  test("is refused by a worker that differs, which names what differs", async () => {
    await using bench = await QueueBench.open();
    await bench.worker({ name: "other", terms: { tokenizer: "t2", turnwright: "0.2.0" } });
    const handOut = await bench.handOut({ terms: { tokenizer: "t1", turnwright: "0.1.0" } });
    const run = bench.start(1, { player: handOut.player() });
    await until(() => bench.news.some(({ type }) => type === "no-worker"));
    const difference =
      "tokenizer differs (here t2, the run's t1); turnwright differs (here 0.2.0, the run's 0.1.0)";
    await until(() => bench.news.length > 0 && JSON.stringify(bench.news).includes("refuses"));
    expect(bench.notes).toEqual([`refuses run test-run: ${difference}`]);
    expect(bench.news.at(-1)).toEqual({
      type: "no-worker",
      why: `the only worker refuses this run; other says: ${difference}`,
    });
    // One on its terms plays it.
    await bench.worker({ terms: { tokenizer: "t1", turnwright: "0.1.0" } });
    expect(await all(run)).toHaveLength(1);
    await until(() => bench.news.at(-1)?.type === "worker-there" || bench.news.length >= 1);
  });

  test("accepts large results only through the shared place, and refuses damaged ones", async () => {
    const long = `Goodbye! ${"x".repeat(60_000)}`;
    const engine = lampEngine((_, turn) => (turn === 1 ? long : undefined));
    // A file that only the worker has does not help.
    for (const isShared of [false, true]) {
      await using bench = await QueueBench.open();
      await bench.worker({ engine, ...(isShared && { place: await bench.place() }) });
      const handOut = await bench.handOut();
      const run = bench.start(1, { player: handOut.player() });
      await expect(all(run)).rejects.toThrow(
        /^Cannot send the result of lamp\/test\/0#[01]: it has \d+ bytes, and what is above 100000 travels by a place that all share: give the run and its workers the same --shared \(worker /,
      );
    }
    await using bench = await QueueBench.open();
    const place = await bench.place();
    let damaged = 0;
    const worker = await bench.place();
    await bench.worker({
      engine,
      place: {
        ...worker,
        async write(name, bytes) {
          if (name.startsWith("results/") && damaged++ === 0) {
            await worker.write(name, Buffer.from(bytes.toString().replace("x", "y")));
          } else await worker.write(name, bytes);
        },
      },
    });
    const plain = await bench.folder("plain");
    await all(bench.start(1, { engine, folder: plain }));
    const handOut = await bench.handOut({ place });
    const folder = await bench.folder("run");
    await all(bench.start(1, { folder, player: handOut.player() }));
    expect(await bench.text("run", "samples.jsonl")).toBe(
      await bench.text("plain", "samples.jsonl"),
    );
    expect(bench.news.filter(({ type }) => type === "result-refused")).toEqual([
      expect.objectContaining({ reason: expect.stringMatching(/is not what was sent$/) as string }),
    ]);
  });

  test("needs the same shared place at its workers", async () => {
    await using bench = await QueueBench.open();
    await bench.worker();
    const handOut = await bench.handOut({ place: await bench.place() });
    const run = bench.start(1, { player: handOut.player() });
    await until(() => bench.notes.length > 0);
    expect(bench.notes).toEqual([
      "refuses run test-run: it shares a place (--shared), and no --shared is given here",
    ]);
    await bench.worker({ place: await bench.place() });
    expect(await all(run)).toHaveLength(1);
  });

  test("pauses all sampling while the policy changes, and marks each token with its version", async () => {
    await using bench = await QueueBench.open();
    let sampling = 0;
    const during: number[] = [];
    const held = withResolvers();
    const first = withResolvers();
    const isUpdated = withResolvers();
    const engine = lampEngine(async (_, turn) => {
      sampling += 1;
      if (turn === 0) {
        first.resolve();
        await held.promise;
      }
      sampling -= 1;
    });
    await bench.worker({ engine });
    await bench.worker({ engine });
    const handOut = await bench.handOut({ isMarked: true });
    // Even if the workers receive the update late, some tokens are sampled after it.
    const lamps = lampSource(4);
    const source: TaskSource = {
      ...lamps,
      async at(groupIndex, options) {
        if (groupIndex === 3) await isUpdated.promise;
        return await lamps.at(groupIndex, options);
      },
    };
    const run = bench.start(4, { player: handOut.player(), source });
    run.announcePolicy(6);
    await first.promise;
    const updated = run.updatePolicy(7, async () => void during.push(sampling), "hold");
    held.resolve();
    await updated;
    isUpdated.resolve();
    expect(during).toEqual([0]);
    const groups = await all(run);
    const versions = groups.flatMap(({ episodes }) =>
      episodes.flatMap(({ segments }) => segments.flatMap(({ policyVersions }) => policyVersions)),
    );
    expect([...new Set(versions)].toSorted()).toEqual(["", "6", "7"]);
    expect(groups.some(({ staleness }) => staleness === 1)).toBe(true);
  });

  test("bounds staleness by announcements if the workers' engines name no version", async () => {
    await using bench = await QueueBench.open();
    const engine = lampEngine();
    await bench.worker({
      engine: {
        ...engine,
        async generate(request, options) {
          const generation = await engine.generate(request, options);
          const pieces = generation.pieces.map((piece) => ({ ...piece, policyVersion: "default" }));
          return { ...generation, pieces };
        },
      },
    });
    const handOut = await bench.handOut();
    const staleness = { max: 1, beyond: "drop" } as const;
    const run = bench.start(2, { player: handOut.player(), staleness });
    run.announcePolicy(6);
    await run.result;
    run.announcePolicy(7);
    const groups = run[Symbol.asyncIterator]();
    const { value: first } = (await groups.next()) as { value: EpisodeGroup };
    expect(first.staleness).toBe(1);
    const versions = first.episodes.flatMap(({ segments }) =>
      segments.flatMap(({ policyVersions }) => policyVersions),
    );
    expect([...new Set(versions)].toSorted()).toEqual(["", "6"]);
    run.announcePolicy(8);
    expect((await groups.next()).done).toBe(true);
    expect(run.progress().groups).toEqual({ finished: 1, leftOut: 1 });
  });

  test("recalls attempts that a group does not need, and ends interrupted ones with their partial results", async () => {
    await using bench = await QueueBench.open();
    const held = withResolvers();
    const aborted: string[] = [];
    await bench.worker({
      engine: lampEngine(async ({ sessionId }, turn) => {
        if (sessionId.endsWith("#1") && turn === 1) await held.promise;
      }),
    });
    const handOut = await bench.handOut();
    const run = bench.start(1, { player: handOut.player(), grouping: { size: 2, started: 3 } });
    const [group] = await all(run);
    expect(group!.episodes.map(({ sampleIndex }) => sampleIndex)).toEqual([0, 2]);
    expect(await run.result).toMatchObject({ end: "finished", progress: { running: 0 } });
    held.resolve();
    expect(aborted).toEqual([]);
  });

  test("continues after the last token of an interrupted attempt, at any worker", async () => {
    await using bench = await QueueBench.open();
    const reached = withResolvers();
    const asked: number[] = [];
    const engine = lampEngine();
    await bench.worker({
      engine: {
        ...engine,
        async generate(request, options) {
          if (turnOf(request) === 0) return await engine.generate(request, options);
          reached.resolve();
          await new Promise<void>((resolve) => {
            options?.cutShort?.addEventListener("abort", () => resolve(), { once: true });
          });
          const whole = await engine.generate(request, options);
          return {
            ...whole,
            outputIds: whole.outputIds.slice(0, 3),
            logprobs: whole.logprobs.slice(0, 3),
            finish: { type: "length" },
            pieces: [{ requestId: "r", tokenCount: 3, policyVersion: "1", finish: "abort" }],
          };
        },
      },
      concurrency: 1,
    });
    const one = { grouping: { size: 1 }, admission: { concurrency: 1 } } as const;
    const handOut = await bench.handOut();
    {
      await using folder = await bench.folder("run");
      const run = bench.start(1, { folder, player: handOut.player(), ...one });
      await reached.promise;
      expect(await run.interrupt()).toMatchObject({ end: "interrupted" });
    }
    await using folder = await bench.folder("run");
    const rest = bench.start(1, {
      folder,
      ...one,
      engine: lampEngine(({ promptIds }) => {
        asked.push(promptIds.length);
        return "dbye!";
      }),
    });
    const [group] = await all(rest);
    expect(asked).toHaveLength(1);
    expect(group!.episodes[0]!.turns.map(({ text }) => text).at(-1)).toBe("Goodbye!");
  });

  test("accepts results of attempts that were played without a hand-out process", async () => {
    await using bench = await QueueBench.open();
    const held = withResolvers();
    const asked: string[] = [];
    const engine = lampEngine(async ({ sessionId }, turn) => {
      asked.push(`${sessionId} ${turn}`);
      await held.promise;
    });
    await bench.worker({ engine });
    const store = await bench.store();
    const lost = await bench.handOut({ store });
    const folder = await bench.folder("run");
    const stop = new AbortController();
    const first = bench.start(1, { folder, player: lost.player(), signal: stop.signal });
    const ended = all(first).catch(() => {});
    await until(() => asked.length === 2);
    // As after a kill: no job is recalled.
    await store[Symbol.asyncDispose]();
    stop.abort();
    await ended;
    await folder[Symbol.asyncDispose]();
    held.resolve();
    const other = await bench.store();
    await until(async () => (await other.redis.zcard("turnwright:run-test-run:completed")) === 2);
    const handOut = await bench.handOut();
    const again = await bench.folder("run");
    const run = bench.start(1, { folder: again, player: handOut.player() });
    expect(await all(run)).toHaveLength(1);
    expect(asked).toHaveLength(4);
    expect(idsIn(await bench.text("run", "episodes.jsonl"))).toEqual(lampIds(1));
  });

  test("fails an attempt over which one worker after the other is lost", async () => {
    await using bench = await QueueBench.open();
    const handOut = await bench.handOut();
    const folder = await bench.folder("run");
    const one = { grouping: { size: 1, attempts: 1 }, admission: { concurrency: 1 } } as const;
    const run = bench.start(1, { folder, player: handOut.player(), ...one });
    const store = await bench.store();
    const jobs = "turnwright:run-test-run:*";
    const lost = all(run);
    await until(async () => {
      for (const name of await store.redis.keys(jobs)) {
        if ((await store.redis.type(name)) !== "hash") continue;
        if ((await store.redis.hget(name, "name")) === "attempt") {
          await store.redis.hset(name, "stc", "10");
          return true;
        }
      }
      return false;
    });
    const [group] = await lost;
    expect(group?.episodes.map(({ failure }) => failure?.code)).toEqual(["internal/worker-lost"]);
    expect(group?.episodes[0]?.failure?.message).toContain("10 workers were lost");
  });

  test("plays attempts of a hand-out that was interrupted and killed before it knew", async () => {
    await using bench = await QueueBench.open();
    const reached = withResolvers();
    const held = withResolvers();
    let isHeld = true;
    await bench.worker({
      engine: lampEngine(async () => {
        if (!isHeld) return;
        reached.resolve();
        await held.promise;
      }),
    });
    const store = await bench.store();
    const lost = await bench.handOut({ store });
    const one = { grouping: { size: 1 }, admission: { concurrency: 1 } } as const;
    const stop = new AbortController();
    const folder = await bench.folder("run");
    const first = bench.start(1, { folder, player: lost.player(), signal: stop.signal, ...one });
    const ended = all(first).catch(() => {});
    await reached.promise;
    const other = await bench.store();
    const interrupted = first.interrupt().catch(() => {});
    const cancelled = "turnwright:run:test-run:cancelled";
    await until(async () => (await other.redis.scard(cancelled)) === 1);
    await store[Symbol.asyncDispose]();
    stop.abort();
    await Promise.all([ended, interrupted]);
    await folder[Symbol.asyncDispose]();
    isHeld = false;
    held.resolve();
    await until(async () => (await other.redis.zcard("turnwright:run-test-run:completed")) === 1);
    const handOut = await bench.handOut();
    const again = await bench.folder("run");
    const run = bench.start(1, { folder: again, player: handOut.player(), ...one });
    const [group] = await all(run);
    expect(group?.episodes.map(({ outcome }) => outcome)).toEqual(["completed"]);
    expect(await run.result).toMatchObject({ end: "finished" });
  });

  test("refuses a result that continues from inputs other than the recorded ones", async () => {
    await using bench = await QueueBench.open();
    const held = withResolvers();
    const asked: string[] = [];
    await bench.worker({
      engine: lampEngine(async (_, turn) => {
        asked.push(`worker ${turn}`);
        await held.promise;
      }),
    });
    const store = await bench.store();
    const lost = await bench.handOut({ store });
    const one = { grouping: { size: 1 }, admission: { concurrency: 1 } } as const;
    const stop = new AbortController();
    const folder = await bench.folder("run");
    const first = bench.start(1, { folder, player: lost.player(), signal: stop.signal, ...one });
    const ended = all(first).catch(() => {});
    await until(() => asked.length === 1);
    await store[Symbol.asyncDispose]();
    stop.abort();
    await ended;
    await folder[Symbol.asyncDispose]();
    // A start without the queue comes as far as the second turn.
    {
      await using here = await bench.folder("run");
      const second = withResolvers();
      const leave = new AbortController();
      const run = bench.start(1, {
        folder: here,
        ...one,
        engine: lampEngine(async (_, turn) => {
          if (turn === 0) return;
          second.resolve();
          await new Promise(() => {});
        }),
        signal: leave.signal,
      });
      const over = all(run).catch(() => {});
      await second.promise;
      leave.abort();
      await over;
    }
    held.resolve();
    const other = await bench.store();
    await until(async () => (await other.redis.zcard("turnwright:run-test-run:completed")) === 1);
    const handOut = await bench.handOut();
    const third = await bench.folder("run");
    const run = bench.start(1, { folder: third, player: handOut.player(), ...one });
    expect(await all(run)).toHaveLength(1);
    expect(asked).toEqual(["worker 0", "worker 1", "worker 1"]);
    await third[Symbol.asyncDispose]();
    const again = await bench.folder("run");
    const recorded = await again.recordings.read("lamp/test/0#0");
    expect(turnsIn(recorded!.inputs)).toBe(2);
  });

  test("fails only the branch whose world, declared repeatable, answers differently at its worker", async () => {
    await using bench = await QueueBench.open();
    let stepCount = 0;
    const setup = longLampSetup();
    const { environment } = setup;
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
    await bench.worker({ setup: { ...setup, environment: odd } });
    const branch = await playBranch(bench);
    expect(branch).toMatchObject({
      outcome: "failed",
      failure: { party: "environment", code: "environment/not-repeatable" },
      segments: [],
    });
    expect(branch.failure?.message).toContain("step switch brings another answer");
  });

  test("fails only the branch whose agent shows the last answer differently at its worker", async () => {
    await using bench = await QueueBench.open();
    let shownCount = 0;
    const setup = longLampSetup();
    const agent: Agent = {
      ...setup.agent,
      observe: (observed) => {
        const [message, ...rest] = setup.agent.observe(observed);
        const isFirst = shownCount++ === 0;
        return isFirst ? [message!, ...rest] : [{ ...message!, content: "off" }, ...rest];
      },
    };
    await bench.worker({ setup: { ...setup, agent } });
    const branch = await playBranch(bench);
    expect(branch).toMatchObject({
      outcome: "failed",
      failure: { party: "agent", code: "agent/not-repeatable" },
      segments: [],
    });
  });

  test("fails a branch alone that meets a smaller limit at its worker", async () => {
    await using bench = await QueueBench.open();
    const setup = longLampSetup(lampEngine());
    const limits = { ...setup.limits };
    let openCount = 0;
    const shrinking: Environment = {
      ...setup.environment,
      async open(task, options) {
        openCount += 1;
        if (openCount > 1) limits.maxTurns = 1;
        return await setup.environment.open(task, options);
      },
    };
    await bench.worker({ setup: { ...setup, environment: shrinking, limits } });
    const branch = await playBranch(bench);
    expect(branch).toMatchObject({
      outcome: "failed",
      failure: { code: "internal/playback" },
      segments: [],
    });
    expect(branch.failure?.message).toContain("a limit ends the conversation before (max-turns)");
  });

  test("continues if a shared place refuses a worker's writes", async () => {
    await using bench = await QueueBench.open();
    const place = await bench.place();
    const full = (): Promise<never> => {
      const error = new Error("ENOSPC: no space left on device, write");
      return Promise.reject(Object.assign(error, { code: "ENOSPC" }));
    };
    let refusedCount = 0;
    const flaky: SharedPlace = {
      ...place,
      write: async (name, bytes) => await (refusedCount++ < 2 ? full() : place.write(name, bytes)),
      recordings: { begin: full, remove: full },
    };
    const engine = lampEngine(() => "y".repeat(60_000));
    await bench.worker({ engine, place: flaky, concurrency: 1 });
    const handOut = await bench.handOut({ place });
    const run = bench.start(1, { player: handOut.player(), grouping: { size: 1 } });
    const [group] = await all(run);
    expect(group!.episodes[0]!.outcome).toBe("completed");
    expect(refusedCount).toBe(3);
  });

  test("takes no complaint of an earlier start's workers for one of this start's", async () => {
    await using bench = await QueueBench.open();
    const setup = longLampSetup();
    const { environment } = setup;
    const strange: Environment = {
      ...environment,
      task: (split, index) => ({ ...environment.task(split, index), id: `other/${index}` }),
    };
    const store = await bench.store();
    const other = await bench.store();
    const lost = await bench.handOut({ store });
    const stop = new AbortController();
    const ended = all(bench.start(4, { player: lost.player(), signal: stop.signal }));
    const key = "turnwright:run-test-run";
    await until(async () => (await other.redis.zcard(`${key}:prioritized`)) === 8);
    await store[Symbol.asyncDispose]();
    stop.abort();
    await ended.catch(() => {});
    const wrong = await bench.worker({ setup: { ...setup, environment: strange }, concurrency: 8 });
    await until(async () => (await other.redis.zcard(`${key}:completed`)) === 8);
    await wrong[Symbol.asyncDispose]();
    await bench.worker();
    const handOut = await bench.handOut();
    expect(await all(bench.start(4, { player: handOut.player() }))).toHaveLength(4);
  });

  test("ends if another process hands out the same run", async () => {
    await using bench = await QueueBench.open();
    const handOut = await bench.handOut();
    const run = bench.start(1, { player: handOut.player() });
    const ended = expect(all(run)).rejects.toThrow(
      new UsageError(
        "Cannot continue: another process hands out the same run test-run, such as from a copy of its folder",
      ),
    );
    await bench.handOut();
    await ended;
  });

  test("continues at the latest hand-out, even if earlier hand-outs notice their loss late", async () => {
    await using bench = await QueueBench.open();
    const store = await bench.store();
    const lost = await bench.handOut();
    const first = bench.start(1, { player: lost.player() });
    const ended = expect(all(first)).rejects.toThrow(/^Cannot continue: another process hands out/);
    const handOut = await bench.handOut();
    const second = bench.start(1, { player: handOut.player() });
    const key = "turnwright:run-test-run:prioritized";
    await until(async () => (await store.redis.zcard(key)) === 2);
    const token = await store.redis.get("turnwright:run:test-run:alive");
    await ended;
    expect(await store.redis.get("turnwright:run:test-run:alive")).toBe(token);
    await lost[Symbol.asyncDispose]();
    expect(await store.redis.zcard(key)).toBe(2);
    expect(await store.redis.hexists("turnwright:runs", "test-run")).toBe(1);
    await bench.worker();
    expect(await all(second)).toHaveLength(1);
  });

  test("skips invalid jobs in its queue", async () => {
    await using bench = await QueueBench.open();
    const store = await bench.store();
    const handOut = await bench.handOut();
    const run = bench.start(1, { player: handOut.player() });
    const queue = "turnwright:run-test-run";
    await until(async () => (await store.redis.zcard(`${queue}:prioritized`)) === 2);
    await store.redis.hset(`${queue}:evil1`, { name: "x", data: "{", opts: "{", timestamp: "1" });
    await store.redis.hset(`${queue}:evil2`, {
      name: "x",
      opts: "{}",
      timestamp: "1",
      data: '{"__proto__":{"evil":1},"job":1}',
    });
    await store.redis.zadd(`${queue}:prioritized`, 1, "evil1", 1, "evil2", 1, "evil3");
    const worker = await bench.worker();
    expect(await Promise.race([all(run), worker.failed])).toHaveLength(1);
    expect(({} as { evil?: number }).evil).toBeUndefined();
  });

  test("continues after the store was full for a while", async () => {
    await using bench = await QueueBench.open(["--maxmemory-policy", "noeviction"]);
    const store = await bench.store();
    const free = withResolvers();
    const begun = withResolvers();
    const worker = await bench.worker({
      leaseMs: 2_000,
      engine: lampEngine(async () => {
        begun.resolve();
        await free.promise;
      }),
    });
    const handOut = await bench.handOut();
    const run = bench.start(4, { player: handOut.player() });
    await begun.promise;
    await store.redis.config("SET", "maxmemory", "1");
    free.resolve();
    await until(async () => /errorstat_OOM:count=\d{2}/.test(await store.redis.info("errorstats")));
    await store.redis.config("SET", "maxmemory", "0");
    expect(await Promise.race([all(run), worker.failed])).toHaveLength(4);
  });

  test("gives each of two runs its share of a worker", async () => {
    await using bench = await QueueBench.open();
    const free = withResolvers();
    const begun: string[] = [];
    const engine = lampEngine(async ({ sessionId }, turn) => {
      if (turn === 0) begun.push(sessionId);
      await free.promise;
    });
    const large = await bench.handOut({ run: "large" });
    const first = bench.start(20, { player: large.player() });
    const store = await bench.store();
    await until(async () => (await store.redis.zcard("turnwright:run-large:prioritized")) >= 16);
    const small = await bench.handOut({ run: "small" });
    const second = bench.start(2, { player: small.player({ name: "s" }) });
    await until(async () => (await store.redis.zcard("turnwright:run-small:prioritized")) === 4);
    const worker = await bench.worker({ engine, concurrency: 4 });
    await until(() => begun.length === 4);
    expect(worker.playingCount).toBe(4);
    // Two of each, though the first run has far more and was there before.
    expect(begun.filter((id) => id.startsWith("lamp/test/0#"))).toHaveLength(4);
    expect(new Set(begun).size).toBe(2);
    free.resolve();
    await Promise.all([all(first), all(second)]);
  });

  test("is returned at once by a worker that drains, and continues from its recording", async () => {
    await using bench = await QueueBench.open();
    const place = await bench.place();
    const reached = withResolvers();
    const never = withResolvers();
    const worker = await bench.worker({
      place,
      leaseMs: 600_000,
      concurrency: 1,
      engine: lampEngine(async (_, turn) => {
        if (turn === 0) return;
        reached.resolve();
        await never.promise;
      }),
    });
    const handOut = await bench.handOut({ place });
    const run = bench.start(1, { player: handOut.player() });
    await reached.promise;
    const drained = worker.drain({ withinMs: 0 });
    await bench.worker({ place });
    expect(await all(run)).toHaveLength(1);
    never.resolve();
    await drained;
    expect(bench.news).toContainEqual(
      expect.objectContaining({
        type: "attempt-played-again",
        from: "recording",
        recordedTurns: 1,
      }),
    );
  });

  test("writes no secret to the store or to the shared place", async () => {
    const key = "sk-very-secret-0123456789";
    await using bench = await QueueBench.open();
    const redactor = new Redactor([key]);
    const place = await bench.place();
    await bench.worker({
      place,
      redactor,
      engine: lampEngine((_, turn) => (turn === 1 ? `Goodbye! ${key}` : undefined)),
    });
    const handOut = await bench.handOut({ place });
    const store = await bench.store();
    const seen: string[] = [];
    await store.redis.config("SET", "slowlog-log-slower-than", "0");
    const player = handOut.player();
    const run = bench.start(1, {
      player: {
        ...player,
        landed: (landedPlace) => {
          seen.push(JSON.stringify(landedPlace));
        },
      },
    });
    await all(run);
    for (const name of await store.redis.keys("*")) {
      const type = await store.redis.type(name);
      if (type === "hash") seen.push(JSON.stringify(await store.redis.hgetall(name)));
      if (type === "stream") seen.push(JSON.stringify(await store.redis.xrange(name, "-", "+")));
      if (type === "string") seen.push((await store.redis.get(name)) ?? "");
    }
    const text = seen.join("\n");
    expect(text).toContain("[redacted]");
    expect(text).not.toContain(key);
    expect(text).toContain("lamp/test/0#1");
  });

  test("refuses a store that requires a password, and an absent store", async () => {
    await using bench = await QueueBench.open(["--requirepass", "hunter2-hunter2"]);
    const { QueueStore } = await import("./store/queue-store.ts");
    const { url } = bench.server;
    await expect(QueueStore.connect({ url }, { connectMs: 500 })).rejects.toThrow(
      /^Cannot reach the queue's store redis:\/\/127\.0\.0\.1:\d+: NOAUTH, it wants a password: name the variable/,
    );
    const config = { url, passwordEnv: "QUEUE_PASSWORD" };
    await expect(QueueStore.connect(config, { env: {} })).rejects.toThrow(
      "Cannot use --queue-password-env: its value is not the name of a variable that is set",
    );
    const redactor = new Redactor();
    const env = { QUEUE_PASSWORD: "hunter2-hunter2" };
    await using store = await QueueStore.connect(config, { env, redactor });
    expect(await store.redis.ping()).toBe("PONG");
    expect(redactor.text("the password hunter2-hunter2")).toBe("the password [redacted]");
    await bench.server.stop();
    await expect(QueueStore.connect({ url }, { connectMs: 500 })).rejects.toThrow(
      /^Cannot reach the queue's store redis:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED/,
    );
  });
});

test("files in a shared folder are complete or absent", async () => {
  await using bench = await (missingStore === undefined
    ? QueueBench.open()
    : Promise.resolve(undefined));
  if (bench === undefined) return;
  const place = await bench.place();
  await place.write("results/r/a", Buffer.from("whole"));
  expect((await place.read("results/r/a", 100))?.toString()).toBe("whole");
  expect((await place.read("results/r/a", 3))?.toString()).toBe("whol");
  expect(await place.read("results/r/b", 100)).toBeUndefined();
  const one = await place.recordings!.begin("recordings/r/job");
  await one.append("first\n");
  const two = await place.recordings!.begin("recordings/r/job");
  expect([one.number, two.number]).toEqual([1, 2]);
  expect(two.earlier.map(String)).toEqual(["first\n"]);
  await place.recordings!.remove("recordings/r/job");
  // The slow process's write has no effect.
  await rm(path.join(bench.dir, "shared", "recordings"), { recursive: true, force: true });
  await one.append("late\n");
  await writeFile(path.join(bench.dir, "other"), longLampSetup().environment.name);
});

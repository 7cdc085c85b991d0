import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "../environment/environment.ts";
import { systemClock, type Clock } from "../async/clock.ts";
import { Redactor } from "../secrets/redactor.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { lamps } from "../run/lamp-run.fixture.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import type { PlayedGroup, Taker } from "./batch-taker.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import { GymAgent, gymTaker } from "./nemo-gym/gym-agent.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/** A clock whose deadlines expire on request. */
function heldClock(): {
  readonly clock: Clock;
  readonly waiting: Set<() => void>;
  readonly end: () => void;
} {
  const waiting = new Set<() => void>();
  const after = (_ms: number, callback: () => void): (() => void) => {
    waiting.add(callback);
    return () => void waiting.delete(callback);
  };
  const end = (): void => {
    for (const callback of waiting) {
      waiting.delete(callback);
      callback();
    }
  };
  return { clock: { ...systemClock, after }, waiting, end };
}

/** Lamps of which one cannot be drawn after the first `times`. */
function flakyLamps(flaky: number, error: () => Error, times = 1): Environment {
  const inner = lamps(50);
  let drawn = 0;
  return {
    ...inner,
    task(split, index) {
      if (index !== flaky) return inner.task(split, index);
      drawn += 1;
      if (drawn > times) throw error();
      return inner.task(split, index);
    },
  };
}

const request = { ...twoLamps, sampling: {} };

describe("a batch that ends while it is being accepted", () => {
  test("stays cancelled, also on a second request, and its stream ends", async () => {
    await using service = await openLamps(dir);
    const submitted = service.submit(request);
    await until(() => service.batches.length > 0);
    expect((await service.cancel("b1")).state).toBe("cancelled");
    expect((await submitted).status.state).toBe("cancelled");
    expect(service.health).toMatchObject({ batches: 0, runningAttempts: 0, queuedAttempts: 0 });
    const call = caller(service);
    expect((await call("GET", "/v1/groups?batch=b1")).body).toEqual([
      '{"type":"end","cursor":0,"state":"cancelled"}',
    ]);
    expect((await call("POST", "/v1/batches", twoLamps)).body).toMatchObject({
      state: "cancelled",
    });
  });

  test("starts no deadline if the service stops in the meantime: no timer keeps the process alive", async () => {
    const { clock, waiting } = heldClock();
    const service = await openLamps(dir, { clock });
    const submitted = service.submit({ ...request, deadlineS: 3600 });
    await until(() => service.batches.length > 0);
    const disposed = service[Symbol.asyncDispose]();
    expect((await submitted).status.state).toBe("queued");
    await disposed;
    expect(waiting.size).toBe(0);
  });
});

test("a late batch waits for its absent consumer, and is given to no other", async () => {
  const taken: PlayedGroup[] = [];
  const taker: Taker = {
    waitsOn: true,
    take: (group) => {
      taken.push(group);
      return Promise.resolve();
    },
  };
  const takers = { "agent-lightning": taker };
  {
    const begun = withResolvers();
    const engine = lampEngine(async (_request, { signal } = {}) => {
      begun.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { engine, takers });
    await service.submit(
      { ...request, tasks: [4], samples: 1, deadlineS: 3600 },
      "agent-lightning",
    );
    await begun.promise;
  }
  {
    const { clock, end } = heldClock();
    await using service = await openLamps(dir, { clock });
    end();
    // Other batches are started and played.
    await service.submit(request);
    await until(() => service.batch("b2").state === "finished");
    await until(() => service.health.batches === 1);
    expect(service.batch("b1")).toMatchObject({ state: "queued", finishedGroups: 0 });
    expect(service.health.unreadGroups).toBe(2);
  }
  const { clock, end } = heldClock();
  await using service = await openLamps(dir, { clock, takers });
  end();
  await until(() => service.health.batches === 0);
  expect(taken.map(({ attempts }) => attempts.map(({ type }) => type))).toEqual([["given-up"]]);
  expect(service.health.unreadGroups).toBe(2);
});

describe("a fault of one batch", () => {
  test("pauses that batch with the reason, after its finished groups, and no other", async () => {
    const held = withResolvers();
    const engine = lampEngine(async ({ sessionId }) => {
      if (sessionId.startsWith("lamp/test/10")) await held.promise;
    });
    const environment = flakyLamps(7, () => new Error("EIO: read /disk?key=s3cret-key"));
    const troubles: string[] = [];
    const options = {
      redactor: new Redactor(["s3cret-key"]),
      onTrouble: (text: string) => void troubles.push(text),
    };
    const reason =
      'Cannot play lamp: its task 7 of "test" cannot be drawn: EIO: read /disk?key=[redacted]';
    {
      await using service = await openLamps(dir, {
        engine,
        environment,
        concurrency: 64,
        ...options,
      });
      await service.submit({ ...request, key: "good", tasks: [10, 11] });
      await service.submit(request);
      await until(() => troubles.length > 0);
      expect(troubles).toEqual([`b2 waits: ${reason}`]);
      const waits = { batch: "b2", state: "queued", finishedGroups: 1, reason };
      expect((await caller(service)("GET", "/v1/batches/b2")).body).toMatchObject(waits);
      held.resolve();
      await until(() => service.batch("b1").state === "finished");
    }
    await using service = await openLamps(dir, options);
    await until(() => service.health.batches === 0);
    expect(service.batch("b2")).toMatchObject({ state: "finished", finishedGroups: 2 });
    expect(service.batch("b2")).not.toHaveProperty("reason");
    expect(troubles).toHaveLength(1);
  });

  test("fails that batch after its deadline, and still delivers the groups of its other tasks", async () => {
    const { clock, end } = heldClock();
    const environment = flakyLamps(4, () => new Error("EIO"));
    await using service = await openLamps(dir, { environment, clock, onTrouble: () => {} });
    await service.submit({ ...request, deadlineS: 3600 });
    await until(() => service.batch("b1").reason !== undefined);
    expect(service.batch("b1")).toMatchObject({ state: "queued", finishedGroups: 0 });
    end();
    const reason = 'Cannot play lamp: its task 4 of "test" cannot be drawn: EIO';
    const call = caller(service);
    const lines = (await call("GET", "/v1/groups?batch=b1")).body as readonly string[];
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { group: { taskIndex: 7 } },
      { type: "end", state: "failed", reason },
    ]);
    expect((await service.submit({ ...request, deadlineS: 3600 })).status).toMatchObject({
      state: "failed",
      finishedGroups: 1,
      reason,
    });
  });

  test.each([4, 7])(
    "keeps no stored group from its consumer if task %i is missing",
    async (away) => {
      const taken: number[] = [];
      let begun = 0;
      const taker = (isOpen: boolean): Taker => ({
        waitsOn: true,
        take: async ({ task }, { signal }) => {
          if (isOpen) return void taken.push(task.index);
          signal.throwIfAborted();
          await new Promise((_, reject) => signal.addEventListener("abort", reject));
        },
      });
      {
        const engine = lampEngine(async ({ sessionId }, { signal } = {}) => {
          if (!sessionId.startsWith("lamp/test/7")) return;
          begun += 1;
          await new Promise((resolve) => signal?.addEventListener("abort", resolve));
        });
        await using service = await openLamps(dir, { engine, takers: { q: taker(false) } });
        await service.submit({ ...request, tasks: [4, 5, 7], samples: 1 }, "q");
        await until(() => begun === 1 && service.health.runningAttempts === 1);
      }
      const reason = `Cannot play lamp: its task ${away} of "test" cannot be drawn: EIO`;
      const environment = flakyLamps(away, () => new Error("EIO"), 0);
      const takers = { q: taker(true) };
      {
        await using service = await openLamps(dir, { environment, takers, onTrouble: () => {} });
        await until(() => service.batch("b1").reason !== undefined);
        expect(service.batch("b1")).toMatchObject({ state: "queued", reason });
        expect(taken).toEqual([4, 5].filter((index) => index !== away));
      }
      await using service = await openLamps(dir, { takers });
      await until(() => service.health.batches === 0);
      // A start delivers again the groups of an earlier one.
      expect(new Set(taken)).toEqual(new Set([4, 5, 7]));
    },
  );

  test("is reported to the waiting consumer", async () => {
    const gym = new GymAgent();
    const environment = flakyLamps(4, () => new Error("EIO"));
    const takers = { [gymTaker]: gym.taker };
    await using service = await openLamps(dir, { environment, takers, onTrouble: () => {} });
    const { status, body } = await caller(service, { gym })("POST", "/run", {
      task_index: 4,
      split: "test",
      agent_ref: { name: "turnwright" },
      responses_create_params: { input: [] },
    });
    expect([status, body]).toEqual([
      502,
      {
        error: {
          code: "rollout-failed",
          message:
            'The rollout failed: Cannot play lamp: its task 4 of "test" cannot be drawn: EIO',
        },
      },
    ]);
    expect(service.batches).toEqual([]);
  });
});

test("a batch waits for a start that has its tasks", async () => {
  {
    await using service = await openLamps(dir);
    await service.submit({ ...request, minPolicyVersion: 1 });
  }
  {
    await using service = await openLamps(dir, { environment: lamps(5), onTrouble: () => {} });
    await service.announce({ version: 1 });
    await until(() => service.batch("b1").reason !== undefined);
    expect(service.batch("b1")).toMatchObject({
      state: "queued",
      reason: '"tasks" is wrong: Cannot play task 7: split "test" has 5 tasks, expected 0 to 4',
    });
  }
  await using service = await openLamps(dir);
  await until(() => service.batch("b1").state === "finished");
});

describe("a batch that was started with other settings than this start's", () => {
  const manifest = { ...testManifest, configuration: { env: "e", temperature: 0.7 } };
  const reason = expect.stringContaining("temperature") as string;

  async function begin(more: object = {}): Promise<void> {
    const begun = withResolvers();
    let asked = 0;
    const engine = lampEngine(async (_request, { signal } = {}) => {
      asked += 1;
      if (asked === 1) return;
      if (asked === 4) begun.resolve();
      await new Promise((resolve) => signal?.addEventListener("abort", resolve));
    });
    await using service = await openLamps(dir, { engine });
    await service.submit({ ...request, ...more });
    await begun.promise;
    await until(() => service.health.runningAttempts === 3);
  }

  test("waits for a start with these, and no other waits for it", async () => {
    await begin();
    const troubles: string[] = [];
    const onTrouble = (text: string): void => void troubles.push(text);
    {
      await using service = await openLamps(dir, { manifest, onTrouble });
      await service.submit({ ...request, key: "other" });
      await until(() => service.batch("b2").state === "finished");
      await until(() => troubles.length > 0);
      expect(service.batch("b1")).toMatchObject({ state: "queued", finishedGroups: 0, reason });
      expect(troubles).toEqual([expect.stringMatching(/^b1 waits: .*temperature/)]);
    }
    await using service = await openLamps(dir);
    await until(() => service.batch("b1").state === "finished");
    expect(service.batch("b1")).not.toHaveProperty("reason");
    expect(service.batch("b1")).toMatchObject({ finishedGroups: 2 });
  });

  test("fails when it is late", async () => {
    await begin({ deadlineS: 3600 });
    const { clock, end } = heldClock();
    await using service = await openLamps(dir, { manifest, clock, onTrouble: () => {} });
    await until(() => service.batch("b1").reason !== undefined);
    end();
    await until(() => service.health.batches === 0);
    expect(service.batch("b1")).toMatchObject({ state: "failed", finishedGroups: 0, reason });
  });

  test("can be cancelled while it waits", async () => {
    await begin();
    {
      await using service = await openLamps(dir, { manifest, onTrouble: () => {} });
      await until(() => service.batch("b1").reason !== undefined);
      const cancelled = await service.cancel("b1");
      expect(cancelled.state).toBe("cancelled");
      expect(cancelled).not.toHaveProperty("reason");
    }
    await using service = await openLamps(dir);
    expect(service.batch("b1").state).toBe("cancelled");
  });
});

import { existsSync } from "node:fs";
import { appendFile, mkdtemp, readFile, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { RolloutError } from "../errors.ts";
import { systemClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import type { KnownPolicy } from "../queue/run/policy-state.ts";
import type { WeightControl } from "./policy-weights.ts";
import type { RemotePlayers } from "./rollout-service-options.ts";
import type { ServiceEntry } from "./service-journal.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-service-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** Answers the first `count` calls; later calls wait until they are aborted. */
function answering(count: number, onMore: () => void = () => {}): Engine {
  let asked = 0;
  return lampEngine(async (_request, { signal } = {}) => {
    asked += 1;
    if (asked <= count) return;
    onMore();
    await new Promise((resolve) => signal?.addEventListener("abort", resolve));
  });
}

interface StreamedGroup {
  readonly cursor: number;
  readonly group: { readonly taskIndex: number };
}

async function streamedGroups(call: ReturnType<typeof caller>): Promise<readonly StreamedGroup[]> {
  const lines = (await call("GET", "/v1/groups?batch=b1")).body as readonly string[];
  return lines.slice(0, -1).map((line) => JSON.parse(line) as StreamedGroup);
}

const sixLamps = { ...twoLamps, tasks: [1, 2, 3, 4, 5, 6] };

describe("a service that starts again", () => {
  test.each([1, 2, 3, 5, 7, 8, 11, 12])(
    "resumes after a stop at attempt %i: no group is lost or delivered twice",
    async (count) => {
      {
        const halted = withResolvers();
        const engine = answering(count, halted.resolve);
        await using service = await openLamps(dir, { engine });
        const call = caller(service);
        await call("POST", "/v1/batches", sixLamps);
        await Promise.race([halted.promise, call("GET", "/v1/groups?batch=b1")]);
      }
      await using service = await openLamps(dir);
      const call = caller(service);
      const groups = await streamedGroups(call);
      expect(groups.map(({ cursor }) => cursor)).toEqual([1, 2, 3, 4, 5, 6]);
      const tasks = groups.map(({ group }) => group.taskIndex);
      expect(tasks.toSorted((one, other) => one - other)).toEqual(sixLamps.tasks);
      expect((await call("POST", "/v1/batches", sixLamps)).status).toBe(200);
      expect((await verifyRun(path.join(dir, "batches/b1"))).violations).toEqual([]);
    },
  );

  test("delivers a group whose file a crash left without its entry in the journal", async () => {
    {
      await using service = await openLamps(dir);
      const call = caller(service);
      await call("POST", "/v1/batches", sixLamps);
      await streamedGroups(call);
    }
    // As a crash between the file and its entry leaves it: the run's folder knows the episodes.
    const journal = path.join(dir, "service.jsonl");
    const lines = (await readFile(journal, "utf8")).split("\n");
    const kept = lines.filter((line) => !/"cursor":[3-6],|batch-ended/.test(line));
    await writeFile(journal, kept.join("\n"));
    await using service = await openLamps(dir, { engine: answering(0) });
    const groups = await streamedGroups(caller(service));
    expect(groups.map(({ cursor }) => cursor)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(groups.map(({ group }) => group.taskIndex)).size).toBe(6);
  });

  test("keeps cancellations, acknowledgements, announcements and pauses", async () => {
    {
      await using service = await openLamps(dir, { engine: answering(2) });
      const call = caller(service);
      await call("POST", "/v1/batches", { ...twoLamps, key: "a", tasks: [1], samples: 1 });
      await streamedGroups(call);
      await call("POST", "/v1/batches", { ...twoLamps, key: "b" });
      await call("DELETE", "/v1/batches/b2");
      await call("POST", "/v1/groups/ack", { cursor: 1 });
      await call("POST", "/v1/policy", { version: 3 });
      await call("POST", "/v1/pause");
    }
    await using service = await openLamps(dir);
    expect(service.health).toMatchObject({
      state: "paused",
      policyVersion: 3,
      batches: 0,
      unreadGroups: 0,
    });
    expect(service.batches.map(({ state }) => state)).toEqual(["finished", "cancelled"]);
    const call = caller(service);
    expect((await call("GET", "/v1/groups")).status).toBe(410);
  });

  test("refuses a data folder that another process writes", async () => {
    await using _service = await openLamps(dir);
    const { fakeMachine } = await import("../run/machine.fixture.ts");
    const machine = fakeMachine(
      { pid: 9 },
      Array.from({ length: 1000 }, (_, pid) => pid),
    );
    await expect(openLamps(dir, { lock: { machine } })).rejects.toThrow("run.lock");
  });

  test.skipIf(!existsSync("/proc/self/fd"))(
    "holds no file and no deadline after a failed opening",
    async () => {
      const late = { ...twoLamps, sampling: {}, minPolicyVersion: 1, deadlineS: 3600 };
      {
        await using service = await openLamps(dir);
        await service.submit(late);
      }
      await appendFile(
        path.join(dir, "service.jsonl"),
        `${JSON.stringify({ type: "policy", version: 0, weights: "/gone" })}\n`,
      );
      const deadlines = new Set<() => void>();
      const after = (_ms: number, callback: () => void): (() => void) => {
        deadlines.add(callback);
        return () => void deadlines.delete(callback);
      };
      const openRemote = (): Promise<never> => Promise.reject(new Error("no store"));
      await expect(openLamps(dir, { openRemote })).rejects.toThrow("no store");
      const load = (): Promise<never> =>
        Promise.reject(new RolloutError("engine/server-error", "no such weights"));
      const weights = { load, have: () => Promise.resolve(false) };
      const clock = { ...systemClock, after };
      await expect(openLamps(dir, { weights, clock })).rejects.toThrow("no such weights");
      expect(deadlines.size).toBe(0);
      const open = await Promise.all(
        (await readdir("/proc/self/fd")).map(
          async (name) => await readlink(`/proc/self/fd/${name}`).catch(() => ""),
        ),
      );
      expect(open.filter((file) => file.startsWith(dir))).toEqual([]);
    },
  );
});

/** Records the policy messages to workers, from the start on. */
function notingRemote(messages: unknown[]): (policy: KnownPolicy) => Promise<RemotePlayers> {
  return async (policy) => {
    messages.push(policy);
    return {
      policy: {
        close: async (mode) => void messages.push(mode),
        open: () => void messages.push("open"),
        announce: (version) => void messages.push(`version ${version}`),
      },
      player: () => ({ play: () => Promise.reject(new Error("nothing is played")) }),
      [Symbol.asyncDispose]: async () => {},
    };
  };
}

describe("the policy state that workers find after the service was killed", () => {
  const announced: ServiceEntry = { type: "policy", version: 7 };
  const loaded: ServiceEntry = { type: "policy", version: 7, weights: "/step-7" };
  const loading: ServiceEntry = { type: "policy-loading", version: 8, weights: "/step-8" };
  const paused: ServiceEntry = { type: "paused", isPaused: true };
  const resumed: ServiceEntry = { type: "paused", isPaused: false };

  /**
   * Starts a service on the folder of a killed one; returns the messages to workers and the engine,
   * in order.
   */
  async function startOn(
    entries: readonly ServiceEntry[],
    control?: Partial<WeightControl>,
  ): Promise<{ readonly messages: readonly unknown[]; readonly error?: unknown }> {
    await writeFile(
      path.join(dir, "service.jsonl"),
      entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""),
    );
    const messages: unknown[] = [];
    const weights: WeightControl | undefined = control && {
      have: () => Promise.resolve(false),
      load: async ({ path: from }) => void messages.push(`load ${from}`),
      ...control,
    };
    try {
      await using _service = await openLamps(dir, {
        openRemote: notingRemote(messages),
        ...(weights && { weights }),
      });
      return { messages };
    } catch (error) {
      return { messages, error };
    }
  }

  test("a policy without any announcement may be asked", async () => {
    expect(await startOn([])).toEqual({ messages: [{ gate: "open" }, "open"] });
  });

  test("a version that was announced is there from the first moment", async () => {
    const messages = [{ gate: "open", version: 7 }, "version 7", "open"];
    expect(await startOn([announced])).toEqual({ messages });
    expect(await startOn([announced, paused, resumed])).toEqual({ messages });
  });

  test("a pause is there from the first moment, and stays", async () => {
    expect(await startOn([announced, paused])).toEqual({
      messages: [{ gate: "interrupt", version: 7 }, "version 7"],
    });
  });

  test("no turn begins before it is known that the engine has the weights", async () => {
    const have = (): Promise<boolean> => Promise.resolve(true);
    expect(await startOn([loaded], { have })).toEqual({
      messages: [{ gate: "hold", version: 7 }, "version 7", "open"],
    });
    // An engine that cannot load weights has its owner's weights.
    expect(await startOn([loaded])).toEqual({
      messages: [{ gate: "open", version: 7 }, "version 7", "open"],
    });
  });

  test("nothing is sampled while weights are reloaded, or after that failed", async () => {
    const first = [{ gate: "hold", version: 7 }, "version 7", "interrupt"];
    expect(await startOn([loaded], {})).toEqual({ messages: [...first, "load /step-7", "open"] });
    const load = (): Promise<never> =>
      Promise.reject(new RolloutError("engine/server-error", "no such folder"));
    const refused = await startOn([loaded], { load });
    expect(refused.messages).toEqual(first);
    expect(String(refused.error)).toContain("Cannot continue with the policy's version 7: no such");
  });

  test("nothing is sampled after an interrupted load until it is repeated", async () => {
    const first = [{ gate: "interrupt", version: 7 }, "version 7", "interrupt", "load /step-8"];
    expect(await startOn([loaded, loading], {})).toEqual({
      messages: [...first, "version 8", "open"],
    });
    expect(await startOn([loaded, loading, paused], {})).toEqual({
      messages: [...first, "version 8"],
    });
    const kept: ServiceEntry = { type: "policy-kept" };
    const have = (): Promise<boolean> => Promise.resolve(true);
    expect(await startOn([loaded, loading, kept], { have })).toEqual({
      messages: [{ gate: "hold", version: 7 }, "version 7", "open"],
    });
  });

  test("a start ends if workers cannot be paused while weights are loaded", async () => {
    await writeFile(path.join(dir, "service.jsonl"), `${JSON.stringify(loaded)}\n`);
    const refusing = async (policy: KnownPolicy): Promise<RemotePlayers> => {
      const remote = await notingRemote([])(policy);
      const close = (): Promise<never> => Promise.reject(new Error("MISCONF"));
      return { ...remote, policy: { ...remote.policy, close } };
    };
    const weights: WeightControl = {
      have: () => Promise.resolve(false),
      load: () => Promise.reject(new Error("it was loaded")),
    };
    await expect(openLamps(dir, { openRemote: refusing, weights })).rejects.toThrow(
      "Cannot begin: sampling cannot be paused at the workers: MISCONF; start again when the queue's store takes it",
    );
  });
});

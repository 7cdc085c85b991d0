import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type * as handingOut from "../../examples/hand-out-desk.ts";
import type * as library from "../../src/index.ts";
import { missingStore, startStore } from "../../src/queue/store/store-server.fixture.ts";
import { startSglangTestServer, createTextPolicy } from "../../src/testing/index.ts";
import { smallModelFolder } from "../support/small-model.ts";
import { Started } from "../support/started.ts";

const built = new URL("../../dist/src/index.js", import.meta.url);
const { evaluate, readRun, rollout, verifyRun } = (await import(built.href)) as typeof library;

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-hand-out-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

describe.skipIf(missingStore !== undefined)("a program of one's own that hands out", () => {
  const desk = fileURLToPath(new URL("../../dist/examples/library-desk.js", import.meta.url));
  const place = (name: string): string => path.join(scratch, name);
  /** A store, a server that says goodbye, and a worker. */
  const start = async () => {
    const store = await startStore();
    const policy = await createTextPolicy(() => [], { modelDir: smallModelFolder });
    const server = await startSglangTestServer({ policy });
    const both = {
      queue: store.url,
      shared: place("shared"),
      url: server.url,
      model: smallModelFolder,
    };
    const settings = Object.entries({ ...both, env: desk, user: "scripted" });
    const flags = settings.flatMap(([name, value]) => [`--${name}`, value]);
    const worker = new Started(["worker", ...flags]);
    return {
      options: { ...both, environment: desk },
      worker,
      async [Symbol.asyncDispose]() {
        for (const part of [worker, server, store]) await part[Symbol.asyncDispose]();
      },
    };
  };

  test("has groups of rollout() and a measure of evaluate() played by workers", async () => {
    await using started = await start();
    const { options, worker } = started;
    const groups: string[] = [];
    const settings = { ...options, out: place("groups"), samples: 2 };
    for await (const { groupId, episodes } of rollout(settings)) {
      groups.push(groupId);
      expect(episodes.map(({ outcome }) => outcome)).toEqual(["completed", "completed"]);
      expect(episodes.map(({ samples }) => samples.length)).toEqual([1, 1]);
    }
    expect(groups.toSorted()).toEqual(["library-desk/test/0", "library-desk/test/1"]);
    expect(worker.output.match(/joins run/g)).toHaveLength(1);
    const measured = await evaluate({ ...options, out: place("measure"), trials: 2 });
    expect((await readRun(place("measure"))).manifest.found["plan"]).toMatchObject({
      taskIndexes: [0, 1],
      sampleCount: 2,
    });
    expect(measured).toMatchObject({ averageReward: { value: 0 }, trialCount: 2 });
    expect(worker.output.match(/joins run/g)).toHaveLength(2);
    const alone = place("alone");
    const { queue: _queue, shared: _shared, ...here } = settings;
    for await (const _ of rollout({ ...here, out: alone }));
    const rowsOf = async (dir: string) =>
      (await readFile(place(`${dir}/samples.jsonl`), "utf8")).split("\n").toSorted();
    expect(await rowsOf("groups")).toEqual(await rowsOf("alone"));
  });

  test("delivers groups while the weights change", async () => {
    await using started = await start();
    const { options } = started;
    const file = new URL("../../dist/examples/hand-out-desk.js", import.meta.url);
    const { trainByQueue } = (await import(file.href)) as typeof handingOut;
    const reported: number[] = [];
    await trainByQueue({ ...options, out: place("trained") }, 3, async (given) => {
      reported.push(given.length);
    });
    expect(reported).toEqual([4, 4, 4]);
    // Which episodes there will be is the program's to say, and not that of the options for its workers.
    const trained = await readRun(place("trained"));
    expect(trained.manifest.found["plan"]).toEqual({ isOpen: true });
    expect(await verifyRun(place("trained"))).toMatchObject({ violations: [] });
  });

  test("says what cannot be handed out", async () => {
    const given = { queue: "redis://127.0.0.1:1", environment: desk, out: place("none") };
    const faultOf = async (options: library.RolloutOptions): Promise<string> =>
      await rollout(options).then(
        () => "none",
        (error: unknown) => (error as Error).message,
      );
    const { queue: _queue, ...withoutQueue } = given;
    const { out: _out, ...withoutOut } = given;
    expect(await faultOf(withoutOut)).toBe(
      "Missing out: a run that is handed out needs a folder, by which it finds again what workers played while it was stopped",
    );
    expect(await faultOf({ ...given, environment: {} as library.Environment })).toBe(
      "Cannot hand out a run whose environment is an object, which does not travel to workers: expected a name or a module's path, as workers are given",
    );
    expect(await faultOf({ ...withoutQueue, shared: "./shared" })).toBe(
      "Cannot use --shared without --queue",
    );
  });
});

import { getEventListeners } from "node:events";
import { readdirSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { Redactor } from "../secrets/redactor.ts";
import { crashingFiles, faultyFiles } from "./faulty-files.fixture.ts";
import { lampPlan, lamps, playLamps } from "./lamp-run.fixture.ts";
import { fakeMachine } from "./machine.fixture.ts";
import { RunFolder, type RunFolderOptions } from "./folder/run-folder.ts";
import { rolloutIdsIn, testManifest } from "./folder/run-folder.fixture.ts";

let scratch = "";
let dir = "";
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rollouts-"));
  dir = path.join(scratch, "run");
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
});

async function open(options: Partial<RunFolderOptions> = {}, at = dir): Promise<RunFolder> {
  return await RunFolder.open(at, testManifest, {
    retryFailed: false,
    format: "slime",
    lock: { machine: fakeMachine({ pid: 1 }) },
    ...options,
  });
}

const rowFiles = ["samples.jsonl", "samples.slime.jsonl"];

describe("runRollouts()", () => {
  test("a process that dies at any call of the file system loses no reported episode", async () => {
    const environment = lamps(2);
    const reference = path.join(scratch, "reference");
    {
      await using folder = await open({}, reference);
      await playLamps(folder, environment);
    }
    const read = async (from: string, name: string) =>
      await readFile(path.join(from, name), "utf8");
    const all = await rolloutIdsIn(reference, "samples.jsonl");
    expect(all).toEqual(["lamp/test/0#0", "lamp/test/0#1", "lamp/test/1#0", "lamp/test/1#1"]);
    let hasEnded = false;
    // Every second call, because each takes a run of its own.
    for (let at = 0; !hasEnded; at += 2) {
      const { files } = crashingFiles(at);
      const reported: string[] = [];
      try {
        await using dying = await open({ files });
        await playLamps(dying, environment, {
          // The first one ends late, so that there is something to sort.
          held: all[0]!,
          onEpisode: ({ rolloutId }) => reported.push(rolloutId),
        });
        hasEnded = true;
      } catch {
        // The error does not matter: the process is dead.
      }
      {
        // The next process finds the dead one's lock, or the draft of one.
        await using folder = await open({ lock: { machine: fakeMachine({ pid: 2 }) } });
        const finished = folder.finished.map(({ rolloutId }) => rolloutId);
        expect(finished, `died at call ${at}`).toEqual(expect.arrayContaining(reported));
        expect(folder.notes).toEqual([]);
        const { progress, end } = await playLamps(folder, environment);
        expect({ end, finished: progress.finished, resumed: progress.resumed }).toEqual({
          end: "finished",
          finished: 4,
          resumed: finished.length,
        });
      }
      for (const name of rowFiles) expect(await read(dir, name)).toBe(await read(reference, name));
      const rows = await rolloutIdsIn(dir, "episodes.jsonl");
      expect(rows.toSorted()).toEqual(all);
      const left = (await readdir(dir)).filter((name) => !name.endsWith(".draft"));
      expect(left.toSorted()).toEqual((await readdir(reference)).toSorted());
      await rm(dir, { recursive: true });
      expect(at).toBeLessThan(1000);
    }
  }, 900_000);

  test.each(["samples.jsonl", "episodes.jsonl", "events.jsonl"])(
    "stops at once if the disk is full for %s, and continues when there is room",
    async (name) => {
      let writeCount = 0;
      const files = faultyFiles(({ operation, path: file }) =>
        operation === "write" && file.endsWith(name) && ++writeCount > 2
          ? { type: "fail", code: "ENOSPC", written: 5 }
          : undefined,
      );
      const environment = lamps(50);
      const reported: string[] = [];
      {
        await using folder = await open({ files });
        const run = playLamps(folder, environment, {
          onEpisode: ({ rolloutId }) => reported.push(rolloutId),
        });
        await expect(run).rejects.toThrow(UsageError);
        await expect(run).rejects.toThrow(
          `Cannot write ${path.join(dir, name)}: ENOSPC: no space left on device, write; make room on ` +
            "the disk, then start the same command again: finished episodes are kept",
        );
      }
      expect(reported.length).toBeLessThan(10);
      await using again = await open();
      const finished = again.finished.map(({ rolloutId }) => rolloutId);
      expect(finished).toEqual(expect.arrayContaining(reported));
      expect(await playLamps(again, environment)).toMatchObject({
        end: "finished",
        progress: { failures: {}, outcomes: { completed: 100 } },
      });
    },
  );

  test("neither an interruption nor another start changes anything while rows are being sorted", async () => {
    const controller = new AbortController();
    let late: Promise<unknown> | undefined;
    const files = faultyFiles(({ operation, path: file }) => {
      if (operation !== "write" || !file.endsWith(".jsonl.next")) return undefined;
      controller.abort();
      late ??= open().catch((error: unknown) => error);
      return undefined;
    });
    const environment = lamps(4);
    await using folder = await open({ files });
    const { end } = await playLamps(folder, environment, {
      held: "lamp/test/0#0",
      signal: controller.signal,
    });
    expect({ end, isAborted: controller.signal.aborted }).toEqual({
      end: "finished",
      isAborted: true,
    });
    expect(String(await late)).toContain(`Cannot use ${dir}: process 1 on one`);
    const ids = Array.from(lampPlan(environment), ({ rolloutId }) => rolloutId);
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(ids);
  });

  test("removes the totals of an earlier end before it continues", async () => {
    const environment = lamps(2);
    {
      await using folder = await open();
      await playLamps(folder, environment);
    }
    const lines = (await readFile(path.join(dir, "samples.jsonl"), "utf8")).split("\n");
    await writeFile(path.join(dir, "samples.jsonl"), lines.slice(1).join("\n"));
    const evaluation = ["evaluation.json", "report.md", "results.tau-bench.json"];
    const evaluated = JSON.stringify({ format: 1, episodes: { finished: 2 } });
    for (const name of evaluation) await writeFile(path.join(dir, name), evaluated);
    await using again = await open({ lock: { machine: fakeMachine({ pid: 2 }) } });
    const during: (readonly string[])[] = [];
    const left = () =>
      readdirSync(dir)
        .filter((name) => /summary\.json|slime/.test(name) || evaluation.includes(name))
        .toSorted();
    await playLamps(again, environment, {
      onEpisode: () => during.push(left()),
    });
    expect(during).toEqual([[]]);
    expect(left()).toEqual(["samples.slime.jsonl", "summary.json"]);
  });

  test("keeps reports that it did not write", async () => {
    const environment = lamps(2);
    const report = path.join(dir, "report.md");
    await mkdir(dir);
    await writeFile(report, "mine");
    {
      const stop = new AbortController();
      await using folder = await open();
      const onEpisode = () => stop.abort(new Error("enough"));
      await playLamps(folder, environment, { onEpisode, signal: stop.signal });
    }
    expect(await readFile(report, "utf8")).toBe("mine");
    const evaluation = path.join(dir, "evaluation.json");
    await writeFile(evaluation, '{"accuracy":1}');
    await using folder = await open({ lock: { machine: fakeMachine({ pid: 2 }) } });
    const { end } = await playLamps(folder, environment);
    expect([end, await readFile(report, "utf8"), await readFile(evaluation, "utf8")]).toEqual([
      "finished",
      "mine",
      '{"accuracy":1}',
    ]);
  });

  test("draws no task before its turn, and of the finished ones only the first", async () => {
    const drawn: number[] = [];
    const environment = lamps(20_000, (index) => drawn.push(index));
    const stop = new AbortController();
    {
      await using folder = await open();
      let count = 0;
      const onEpisode = () => {
        if (++count === 6) stop.abort(new Error("enough"));
      };
      await playLamps(folder, environment, { onEpisode, signal: stop.signal });
    }
    expect(Math.max(...drawn)).toBeLessThan(10);
    drawn.splice(0);
    await using folder = await open();
    expect(folder.finished.length).toBeGreaterThanOrEqual(6);
    const again = new AbortController();
    await playLamps(folder, environment, {
      onEpisode: () => again.abort(new Error("enough")),
      signal: again.signal,
    });
    expect(drawn.filter((index) => index === 0)).toEqual([0]);
    expect(drawn.length).toBeLessThan(10);
  });

  const secret = "sk-of-somebody-0123";
  const circle: unknown[] = [];
  circle.push(circle);

  test.each<[what: string, thrown: () => unknown]>([
    ["an error", () => new Error(`no access with ${secret}`, { cause: new Error(`to ${secret}`) })],
    ["a text", () => new Error(`no access with ${secret}`, { cause: `Error: to ${secret}` })],
    [
      "errors that cannot be changed",
      () => {
        const cause = Object.freeze(new Error(`to ${secret}`));
        return Object.freeze(new Error(`no access with ${secret}`, { cause }));
      },
    ],
    [
      "errors that cannot be looked through",
      () => {
        const cause = Object.assign(new Error(`to ${secret}`), { all: circle });
        return Object.assign(new Error(`no access with ${secret}`, { cause }), { of: [1n] });
      },
    ],
  ])("no secret of a failure is written or reported: %s", async (_, thrown) => {
    const environment: Environment = {
      ...lamps(1),
      open: () => {
        throw thrown();
      },
    };
    const reported: unknown[] = [];
    {
      await using folder = await open();
      const { progress } = await playLamps(folder, environment, {
        attempts: 2,
        redactor: new Redactor([secret]),
        onEpisode: (episode) => reported.push(episode),
      });
      reported.push(progress);
    }
    const texts = await Promise.all(
      (await readdir(dir)).map((name) => readFile(path.join(dir, name), "utf8")),
    );
    const all = [...texts, JSON.stringify(reported)].join("\n");
    expect(all).toContain("no access with [redacted]");
    expect(all).toContain("Caused by: Error: to [redacted]");
    expect(all).not.toContain(secret);
  });

  test("refuses two tasks with one id", async () => {
    const environment = lamps(3);
    const alike = {
      ...environment,
      task: (split: string, index: number) => ({ ...environment.task(split, index), id: "same" }),
    };
    await using folder = await open();
    await expect(playLamps(folder, alike)).rejects.toThrow(
      "Cannot play lamp: task 1 has the id of another one, same",
    );
  });

  test("writes thrown errors to the events, with their stack, even if the episode did not fail", async () => {
    const environment = lamps(1);
    const clumsy = {
      ...environment,
      open: async (...given: Parameters<typeof environment.open>) => ({
        ...(await environment.open(...given)),
        [Symbol.asyncDispose]: async () => {
          throw new TypeError("the container is gone");
        },
      }),
    };
    await using folder = await open();
    const { progress } = await playLamps(folder, clumsy);
    const message = "Cannot dispose of the world of task lamp/test/0: the container is gone";
    expect(progress).toMatchObject({
      finished: 2,
      scored: 2,
      outcomes: { failed: 0 },
      troubles: { "environment/exception": 2 },
    });
    const rows = (await readFile(path.join(dir, "episodes.jsonl"), "utf8")).trimEnd().split("\n");
    expect(rows.map((row) => (JSON.parse(row) as { troubles?: object }).troubles)).toEqual(
      [1, 2].map(() => [{ party: "environment", code: "environment/exception", message }]),
    );
    const events = (await readFile(path.join(dir, "events.jsonl"), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ type }) => type === "trouble");
    // The two play at the same time: either may be the first.
    const reported = events.map(({ rolloutId, code, attempt }) =>
      JSON.stringify([rolloutId, code, attempt]),
    );
    expect(new Set(reported)).toEqual(
      new Set([
        '["lamp/test/0#0","environment/exception",1]',
        '["lamp/test/0#1","environment/exception",1]',
      ]),
    );
    expect(reported).toHaveLength(2);
    expect(progress.firstTrouble).toMatch(/^lamp\/test\/0#[01]: Cannot dispose of the world of /);
    expect(progress.firstTrouble).toContain(message);
    expect(events[0]!["stack"]).toMatch(
      /^RolloutError: Cannot dispose of .+\n[^]*Caused by: TypeError: the container is gone\n\s+at /,
    );
  });

  test("leaves no listener on the caller's signal, however it ends", async () => {
    const { signal } = new AbortController();
    {
      await using folder = await open();
      await playLamps(folder, lamps(3), { signal });
      expect(getEventListeners(signal, "abort")).toHaveLength(0);
    }
    {
      await using folder = await open();
      await folder[Symbol.asyncDispose]();
      await expect(playLamps(folder, lamps(4), { signal })).rejects.toThrow("it was closed");
    }
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

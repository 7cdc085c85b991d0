import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Episode } from "../../episode/episode.ts";
import { playEpisode } from "../../episode/play-episode.ts";
import { RolloutError } from "../../errors.ts";
import { diskFiles, type Files } from "../disk/files.ts";
import {
  fiftyLamps,
  lampList,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "../lamp-groups.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import { rolloutIdOfLine } from "./sample-line.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import type { TaskSource } from "../schedule/task-source.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "read-episodes-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** As Python's json.dumps() spells it. */
function respell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(respell).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)}: ${respell(member)}`,
  );
  return `{${members.join(", ")}}`;
}

async function respellLines(name: string): Promise<void> {
  const file = path.join(dir, name);
  const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
  await writeFile(file, lines.map((line) => `${respell(JSON.parse(line))}\n`).join(""));
}

/** Ends the first attempt of the first group, and no other. */
async function playFirst(options: Partial<StartRunOptions> = {}): Promise<void> {
  await using folder = await openLamps(dir);
  const stop = new AbortController();
  const admission = { concurrency: 1 };
  const onEpisode = () => stop.abort();
  await startLamps({ folder, signal: stop.signal, admission, onEpisode, ...options }).result;
}

/** Returns the number of attempts in each group that the next start delivers. */
async function sizesOf(options: Partial<StartRunOptions> = {}): Promise<readonly number[]> {
  await using folder = await openLamps(dir);
  expect(folder.finished.length).toBeGreaterThan(0);
  const groups = await takeAll(startLamps({ folder, ...options }));
  return groups.map(({ episodes }) => episodes.length);
}

describe("the rollout id of a line", () => {
  test.each<[string, string, string | undefined]>([
    ["as it is written", '{"format":1,"rolloutId":"a#0","more":[1]}', "a#0"],
    ["with spaces", '{"format": 2, "rolloutId" : "a#0", "more": [1]}', "a#0"],
    ["after another id in a nested object", '{"by":{"rolloutId":"b#1"},"rolloutId":"a#0"}', "a#0"],
    [
      "after text that looks like another id",
      '{"said":"\\"rolloutId\\":\\"b#1\\"","rolloutId":"a#0"}',
      "a#0",
    ],
    [
      "of more than 4 kB",
      `{"format":1,"rolloutId":"${"a".repeat(5000)}#0"}`,
      `${"a".repeat(5000)}#0`,
    ],
    ["after a long text", `{"said":"${"x".repeat(5000)}","rolloutId":"a#0"}`, "a#0"],
    ["with escapes", '{"rolloutId":"a\\u0023\\"0"}', 'a#"0'],
    ["of another kind", '{"rolloutId":7}', undefined],
    ["only in depth", '{"by":{"rolloutId":"b#1"}}', undefined],
    ["in a torn line", '{"by":[{"rolloutId":"b#1"', undefined],
    ["in no object", "null", undefined],
  ])("%s", (_, line, expected) => {
    expect(rolloutIdOfLine(Buffer.from(line))).toBe(expected);
  });
});

describe("groups with attempts of an earlier start are delivered complete", () => {
  test.each([["episodes.jsonl"], ["samples.jsonl"]])(
    "if another program rewrote %s",
    async (name) => {
      await playFirst();
      await respellLines(name);
      expect(await sizesOf()).toEqual([2, 2, 2]);
      await respellLines(name);
      expect(await sizesOf({ redeliver: true })).toEqual([2, 2, 2]);
    },
  );

  test("if ids have more than 4 kB, and no recorded turn is sampled again", async () => {
    const groupId = "g".repeat(5000);
    const source: TaskSource = {
      length: 1,
      repeatable: true,
      at: () => ({ task: fiftyLamps.task("test", 0), groupId }),
    };
    const stop = new AbortController();
    const stopping = switchingEngine(({ sessionId }, turn) => {
      if (sessionId.endsWith("#1") && turn === 1) stop.abort();
    });
    const setup = lampSetup({ environment: fiftyLamps, engine: stopping });
    await playFirst({ source, setup, signal: stop.signal, onEpisode: () => {} });
    const asked: string[] = [];
    const engine = switchingEngine(
      ({ sessionId }, turn) => void asked.push(`${sessionId.slice(-2)}:${turn}`),
    );
    const next = lampSetup({ environment: fiftyLamps, engine });
    expect(await sizesOf({ source, setup: next })).toEqual([2]);
    expect(asked).toEqual(["#1:1"]);
  });

  test("if an agent's own episode names another rollout first", async () => {
    const setup: StartRunOptions["setup"] = {
      ...lampSetup({ environment: fiftyLamps, engine: switchingEngine() }),
      play: async (assignment, given, options) => {
        const { play: _play, ...own } = given;
        const { rolloutId, ...rest } = await playEpisode(assignment, own, options);
        return { origin: { rolloutId: "server-4711" }, ...rest, rolloutId } as Episode;
      },
    };
    await playFirst({ setup });
    expect(await sizesOf({ setup })).toEqual([2, 2, 2]);
  });
});

test.each([
  ["a group", false],
  ["a group that is handed out again", true],
])("%s is refused without an attempt that is missing now", async (_, redeliver) => {
  if (redeliver) {
    await using folder = await openLamps(dir);
    await startLamps({ folder }).result;
  } else await playFirst();
  await using folder = await openLamps(dir);
  // It is there when the folder is opened, and gone when it is read.
  const file = path.join(dir, "episodes.jsonl");
  const [first, ...others] = (await readFile(file, "utf8")).split("\n");
  await writeFile(file, ["x".repeat(first!.length), ...others].join("\n"));
  const { rolloutId } = JSON.parse(first!) as Episode;
  await expect(takeAll(startLamps({ folder, redeliver }))).rejects.toThrow(
    `Cannot read ${rolloutId} back from ${dir}: it was finished there, and its line or its rows are no longer ` +
      "in the files, as if another program had changed them; start again, and it is played again",
  );
});

test("a start that ends many half finished groups goes through the files once", async () => {
  const outage = new RolloutError("engine/overloaded", "503", { retryable: true });
  const about = {
    source: lampList(40),
    grouping: { size: 2, attempts: 1 },
    maxFailuresInRow: Infinity,
  };
  {
    await using folder = await openLamps(dir);
    const engine = switchingEngine(({ sessionId }) =>
      sessionId.endsWith("#1") ? outage : undefined,
    );
    await startLamps({ ...about, folder, engine }).result;
  }
  let readCount = 0;
  const counting: Files = {
    ...diskFiles,
    open: async (file, mode) => {
      const open = await diskFiles.open(file, mode);
      if (mode !== "read") return open;
      const read: typeof open.read = async (...given) => {
        const length = await open.read(...given);
        readCount += length;
        return length;
      };
      return { ...open, read };
    },
  };
  await using folder = await openLamps(dir, { retryFailed: true, files: counting });
  const names = ["episodes.jsonl", "samples.jsonl"];
  const texts = await Promise.all(names.map((name) => readFile(path.join(dir, name))));
  const size = texts.reduce((sum, { length }) => sum + length, 0);
  readCount = 0;
  const groups = await takeAll(startLamps({ ...about, folder }));
  expect(groups.map(({ episodes }) => episodes.length)).toEqual(
    Array.from({ length: 40 }, () => 2),
  );
  // Once to find the rows, once to read them, and once to sort all of them, which are twice as many
  // by that time.
  expect(readCount).toBeLessThan(6 * size);
});

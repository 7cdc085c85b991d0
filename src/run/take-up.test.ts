import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { Redactor } from "../secrets/redactor.ts";
import type { Task } from "../task.ts";
import { openLamps, startLamps, switchingEngine, takeAll } from "./lamp-groups.fixture.ts";
import { lamps, lampSetup } from "./lamp-run.fixture.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { createPushedTasks } from "./schedule/pushed-tasks.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-take-up-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** A limited number of lamps, with data that JSON cannot represent. */
function mappedLamps(count: number): Environment {
  const plain = lamps(count);
  return {
    ...plain,
    task(split, index) {
      if (index >= count) throw new UsageError(`Cannot find lamp ${index}`);
      return { ...plain.task(split, index), data: { lit: new Map() } };
    },
  };
}

/** A start that plays the lamps with these indexes, of `count` lamps. */
async function play(
  lampCount: number,
  indexes: readonly number[],
  {
    isTaken = true,
    onRequest,
    environment = mappedLamps(lampCount),
    ...more
  }: Partial<StartRunOptions> & {
    readonly isTaken?: boolean;
    readonly onRequest?: () => unknown;
    readonly environment?: Environment;
  } = {},
) {
  await using folder = await openLamps(dir);
  const source = createPushedTasks();
  for (const index of indexes) source.push({ task: environment.task("test", index) });
  source.end();
  const run = startLamps({
    source,
    folder,
    grouping: { size: 1 },
    admission: { concurrency: 1 },
    setup: lampSetup({ environment, engine: switchingEngine(onRequest) }),
    ...more,
  });
  await run.result;
  return isTaken ? (await takeAll(run)).map(({ groupId, task }) => [groupId, task.data]) : [];
}

const data = { lit: new Map() };

test("a task of a complete group may be gone", async () => {
  expect(await play(5, [4])).toEqual([["lamp/test/4", data]]);
  expect(await play(4, [1])).toEqual([["lamp/test/1", data]]);
  // A task that is given again is skipped.
  expect(await play(5, [4, 2])).toEqual([["lamp/test/2", data]]);
});

test.each<[how: string, change: (task: Task) => Task]>([
  ["whole", (task) => task],
  ["to be drawn again", (task) => ({ ...task, data })],
  ["by a hash, as it holds a known key", (task) => ({ ...task, instruction: "sk-known-key: on." })],
])("a task that was recorded %s is skipped if it is given again", async (_, change) => {
  const plain = lamps(3);
  const environment: Environment = {
    ...plain,
    task: (split, index) => change(plain.task(split, index)),
  };
  const redactor = new Redactor(["sk-known-key"]);
  const stop = new AbortController();
  let requestCount = 0;
  // The first group has ended, and the next start resumes the second.
  await play(3, [0, 1, 2], {
    environment,
    redactor,
    signal: stop.signal,
    onRequest: () => ++requestCount === 3 && stop.abort(),
  });
  const again = await play(3, [0, 1, 2], { environment, redactor });
  expect(again.map(([groupId]) => groupId)).toEqual(["lamp/test/1", "lamp/test/2"]);
});

test("a task of a resumed group must exist", async () => {
  const stop = new AbortController();
  await play(5, [4], { signal: stop.signal, onRequest: () => stop.abort() });
  await expect(play(4, [1])).rejects.toThrow("Cannot find lamp 4");
  expect(await play(5, [1])).toEqual([
    ["lamp/test/4", data],
    ["lamp/test/1", data],
  ]);
});

test("a task of a group that is delivered again must exist, and only of those", async () => {
  const redeliver = true;
  await play(5, [3], { redeliver });
  await play(5, [4], { redeliver, isTaken: false });
  await expect(play(4, [1], { redeliver })).rejects.toThrow("Cannot find lamp 4");
  // The start has started nothing.
  const environment = mappedLamps(5);
  const gone: Environment = {
    ...environment,
    task: (split, index) => {
      if (index === 3) throw new UsageError("Cannot find lamp 3");
      return environment.task(split, index);
    },
  };
  const setup = lampSetup({ environment: gone, engine: switchingEngine() });
  expect(await play(5, [], { redeliver, setup })).toEqual([["lamp/test/4", data]]);
});

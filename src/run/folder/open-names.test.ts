import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Environment } from "../../environment/environment.ts";
import { Redactor } from "../../secrets/redactor.ts";
import {
  fiftyLamps,
  lampList,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "../lamp-groups.fixture.ts";
import { lampSetup } from "../lamp-run.fixture.ts";
import { rolloutIdsIn } from "./run-folder.fixture.ts";
import { createTaskList } from "../schedule/task-source.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-names-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(dir, { recursive: true });
});

/** As a key that an engine without one was given. */
const key = "storefront";

/** Lamps with tasks that have their own names. */
const named: Environment = {
  ...fiftyLamps,
  task: (split, index) => ({ ...fiftyLamps.task(split, index), id: `storefront-lamp/${index}` }),
};

describe("a known key in a name", () => {
  test("changes no id: the run continues with all its rows, and one warning", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const ids = [
      "storefront-lamp/0#0",
      "storefront-lamp/0#1",
      "storefront-lamp/1#0",
      "storefront-lamp/1#1",
    ];
    const redactor = new Redactor([key]);
    const play = async (stopAfter: number) => {
      await using folder = await openLamps(dir, { format: "slime" });
      const stop = new AbortController();
      let count = 0;
      const engine = switchingEngine(() => void (++count > stopAfter && stop.abort()));
      const run = startLamps({
        source: createTaskList(named, { split: "test", taskIndexes: [0, 1] }),
        setup: lampSetup({ environment: named, engine }),
        folder,
        redactor,
        signal: stop.signal,
        admission: { concurrency: 1 },
      });
      return { groups: await takeAll(run), result: await run.result };
    };
    expect((await play(3)).result.end).toBe("interrupted");
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(ids.slice(0, 1));
    const { groups, result } = await play(Infinity);
    expect(result).toMatchObject({ end: "finished", slime: { groups: 2, rows: 4 } });
    expect(groups.map(({ groupId }) => groupId)).toEqual([
      "storefront-lamp/0",
      "storefront-lamp/1",
    ]);
    expect(groups.flatMap(({ episodes }) => episodes)).toMatchObject(
      ids.map((rolloutId, index) => ({
        rolloutId,
        environment: "lamp",
        split: "test",
        groupId: rolloutId.slice(0, -2),
        taskId: rolloutId.slice(0, -2),
        taskIndex: Math.floor(index / 2),
      })),
    );
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(ids);
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(ids);
    const events = await readFile(path.join(dir, "events.jsonl"), "utf8");
    expect(events).not.toContain("[redacted]/");
    expect(warned.mock.calls).toEqual([
      [
        'A known key or password is a part of the id of task 0 of "test", or of its group\'s: ids are written as ' +
          "they are; give another key or other ids if it is a secret",
      ],
    ]);
  });

  test.each([
    ["the environment's name", { ...fiftyLamps, name: "storefront-lamps" }],
    ["the name of a split", { ...fiftyLamps, splits: { test: 50, "storefront-2": 3 } }],
  ])("is refused at the start if it is in %s", async (what, environment) => {
    await using folder = await openLamps(dir);
    const start = () =>
      startLamps({
        folder,
        source: lampList(1),
        redactor: new Redactor([key]),
        setup: lampSetup({ environment, engine: switchingEngine() }),
      });
    expect(start).toThrow(
      `Cannot start a run of ${environment.name}: a known key or password is a part of ${what}, and would be ` +
        "taken out of all that says it; give another key, such as a longer one, where the engine takes any",
    );
  });
});

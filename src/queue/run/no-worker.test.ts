import { expect, test } from "vitest";
import { describeIdle, type IdleWorker } from "./no-worker.ts";

const one = (worker: string, more: Partial<IdleWorker> = {}): IdleWorker => ({
  worker,
  state: "working",
  concurrency: 2,
  playing: {},
  refuses: {},
  ...more,
});

test.each<readonly [string, readonly IdleWorker[], string | undefined]>([
  [
    "there is none",
    [],
    "no worker is there: start one with `turnwright worker` and the same --queue",
  ],
  [
    "the only one refuses",
    [one("a", { refuses: { r: "no" } })],
    "the only worker refuses this run; a says: no",
  ],
  [
    "all refuse",
    [one("a", { refuses: { r: "no" } }), one("b", { refuses: { r: "never" } })],
    "all 2 workers refuse this run; a says: no",
  ],
  [
    "one has room",
    [one("a", { refuses: { r: "no" } }), one("b", { playing: { o: 1 } })],
    undefined,
  ],
  ["a full one plays it", [one("a", { playing: { o: 1, r: 1 } })], undefined],
  [
    "the one that fits is ending",
    [one("a", { refuses: { r: "no" } }), one("b", { state: "draining" })],
    "b fits this run, but is ending: start another worker",
  ],
  [
    "those that fit are full",
    ["a", "b", "c", "d"].map((name) => one(name, { playing: { o: 2 } })),
    "the workers that fit this run (a, b, c and 1 more) play 8 attempts of other runs, as many as they have room for: " +
      "wait, or start another worker",
  ],
])("describes why no worker plays a run: %s", (_, workers, why) => {
  expect(describeIdle(workers, "r")).toBe(why);
});

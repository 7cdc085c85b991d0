import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { createDeferred } from "../testing/deferred.ts";
import { RunFollower } from "./follow-run.ts";
import { openTeacher } from "./open-teacher.ts";

let dir: string;
let file: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-follow-"));
  file = path.join(dir, "samples.jsonl");
});
afterEach(async () => await rm(dir, { recursive: true }));

/** A row with ids that name it. */
function lineOf(id: number): string {
  return JSON.stringify({ rolloutId: `r${id}`, segment: 0, tokenIds: [1, id], promptLength: 1 });
}

/** An engine that reports each scored row. It fails while `isOut` says so. */
function teacher(isOut: () => boolean = () => false) {
  const waiting = new Map<number, ReturnType<typeof createDeferred<void>>>();
  const seen = (id: number): ReturnType<typeof createDeferred<void>> => {
    if (!waiting.has(id)) waiting.set(id, createDeferred());
    return waiting.get(id)!;
  };
  const engine: Engine = {
    kind: "fake",
    generate: () => Promise.reject(new Error("no turn is sampled")),
    describe: async () => ({ kind: "fake", logprobConvention: "raw" }),
    async score({ ids }) {
      seen(ids[1]!).resolve();
      if (isOut()) throw new RolloutError("engine/unreachable", "Cannot score: it is down");
      return [-1];
    },
    close: async () => {},
  };
  return { engine, seen: async (id: number) => await seen(id).promise };
}

test("rows are scored as they are written, and a line that is still written later", async () => {
  const { engine, seen } = teacher();
  await using opened = await openTeacher(dir, { engine, topCount: 0 });
  const follower = new RunFollower(dir, { writer: opened.writer, terms: opened.terms });
  follower.wake();
  const [first, second] = [lineOf(1), lineOf(2)];
  await writeFile(file, `${first}\n${second.slice(0, 20)}`);
  follower.wake();
  await seen(1);
  await appendFile(file, `${second.slice(20)}\n`);
  follower.wake();
  await seen(2);
  await appendFile(file, `${lineOf(3)}\n`);
  expect(await follower.finish()).toEqual({
    rowCount: 3,
    scoredCount: 3,
    knownCount: 0,
    tokenCount: 3,
    unreadableCount: 0,
    leftOutCount: 0,
    leftOut: [],
  });
  const text = await readFile(path.join(dir, "teachers", "fake.jsonl"), "utf8");
  expect(text.match(/"rolloutId":"r\d"/g)).toHaveLength(3);
});

test("rows of an outage are scored at the end", async () => {
  let isOut = true;
  const { engine, seen } = teacher(() => isOut);
  await using opened = await openTeacher(dir, { engine, topCount: 0 });
  await writeFile(file, `${lineOf(1)}\n`);
  const follower = new RunFollower(dir, { writer: opened.writer, terms: opened.terms });
  follower.wake();
  await seen(1);
  isOut = false;
  expect(await follower.finish()).toMatchObject({ rowCount: 1, scoredCount: 1 });
});

test("an outage at the end is no error of the run", async () => {
  const { engine } = teacher(() => true);
  await using opened = await openTeacher(dir, { engine, topCount: 0 });
  await writeFile(file, `${lineOf(1)}\n`);
  const follower = new RunFollower(dir, { writer: opened.writer, terms: opened.terms });
  expect(await follower.finish()).toMatchObject({
    scoredCount: 0,
    failure: expect.stringContaining("it is down") as string,
  });
});

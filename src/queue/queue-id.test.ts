import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { queueIdOf } from "./queue-id.ts";

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-queue-id-"));
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

const file = (): string => path.join(dir, "queue.json");

async function written(): Promise<unknown> {
  return JSON.parse(await readFile(file(), "utf8"));
}

test("queueIdOf() gives a run its id again, and another run another", async () => {
  const first = await queueIdOf(dir, "a");
  expect(await written()).toEqual({ queue: 1, run: first, of: "a" });
  expect(await queueIdOf(dir, "a")).toBe(first);
  const second = await queueIdOf(dir, "b");
  expect(second).not.toBe(first);
  expect(await written()).toEqual({ queue: 1, run: second, of: "b" });
});

test("queueIdOf() gives a service its id again", async () => {
  const first = await queueIdOf(dir, undefined);
  expect(await written()).toEqual({ queue: 1, run: first });
  expect(await queueIdOf(dir, undefined)).toBe(first);
  expect(await queueIdOf(dir, "a")).not.toBe(first);
});

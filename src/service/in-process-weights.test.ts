import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { InvariantError, UsageError } from "../errors.ts";
import { inProcessWeights } from "./in-process-weights.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "in-process-weights-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

describe("inProcessWeights()", () => {
  test("reports a refused or unreadable weights file as a refusal of the engine", async () => {
    const unread = await readFile(dir).catch((error: unknown) => error);
    for (const [failure, message] of [
      [new UsageError("Cannot load it"), "Cannot load it"],
      [unread, "Cannot load the model in /step-1: EISDIR"],
    ] as const) {
      const control = inProcessWeights({ loadWeights: async () => await Promise.reject(failure) });
      await expect(control.load({ path: "/step-1", version: "1" })).rejects.toMatchObject({
        code: "engine/server-error",
        message: expect.stringContaining(message) as string,
      });
    }
    const bug = new InvariantError("a bug");
    const broken = inProcessWeights({ loadWeights: async () => await Promise.reject(bug) });
    await expect(broken.load({ path: "/step-1", version: "1" })).rejects.toBe(bug);
  });

  test("names a folder's fault before it loads anything", async () => {
    await writeFile(path.join(dir, "model.safetensors"), "torn");
    const control = inProcessWeights({ loadWeights: async () => {} });
    const torn = { path: path.relative(process.cwd(), dir), version: "1" };
    expect(await control.findProblem!(torn)).toBe(
      `Cannot load the model in ${dir}: model.safetensors has no header, expected weights in safetensors format`,
    );
  });
});

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { python, pythonObstacle } from "../../src/python/python.fixture.ts";

const example = fileURLToPath(new URL("../../examples/grpo", import.meta.url));

const why = pythonObstacle("torch", "numpy", "safetensors", "tokenizers");
if (why !== undefined) console.warn(`Skipping the GRPO example: ${why}`);

let out: string;
beforeEach(async () => {
  out = await mkdtemp(path.join(tmpdir(), "turnwright-grpo-"));
});
afterEach(async () => {
  await rm(out, { recursive: true });
});

/** Six attempts a step, and as good as no evaluation. */
const tiny = ["--tasks", "3", "--samples", "2", "--held-out", "2", "1", "--watch-every", "0"];

/** Runs the loop to its end; returns the output. */
async function train(...flags: readonly string[]) {
  return await promisify(execFile)(
    python,
    [path.join(example, "grpo.py"), "--out", out, ...tiny, ...flags],
    { env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } },
  );
}

interface Entry {
  readonly step: number;
  readonly held_out?: number;
  readonly trained_tokens?: number;
  readonly fresh_tokens?: number;
  readonly ratio_deviation?: number;
  readonly changed_rows?: number;
}

async function readLog(): Promise<readonly Entry[]> {
  const text = await readFile(path.join(out, "log.jsonl"), "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Entry);
}

describe.skipIf(why !== undefined)("examples/grpo", () => {
  test("trains on exactly the sampled tokens, and resumes after a stop", async () => {
    await train("--steps", "1");
    const { stdout } = await train("--steps", "2");
    expect(stdout).toContain("Resuming after step 1");
    const log = await readLog();
    expect(log.map(({ step, held_out: heldOut }) => [step, heldOut !== undefined])).toEqual([
      [0, true],
      [1, false],
      [1, true],
      [2, false],
      [2, true],
    ]);
    const first = log[1]!;
    expect(first.trained_tokens).toBeGreaterThan(0);
    expect(first.fresh_tokens).toBe(first.trained_tokens);
    expect(first.ratio_deviation).toBeLessThan(1e-3);
    const folders = await readdir(path.join(out, "policy"));
    expect(folders.toSorted()).toEqual(["step-1", "step-2"]);
    expect(existsSync(path.join(out, "curve.svg"))).toBe(true);
    await expect(train("--steps", "2", "--seed", "2")).rejects.toMatchObject({
      stderr: expect.stringContaining("it holds a run with other settings"),
    });
  });

  test("stops if the logprobs are shifted by one", async () => {
    await expect(train("--steps", "1", "--shift-logprobs")).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the recorded log-probabilities are not those of sampling"),
    });
  });

  test("trains on text that is encoded again, without recorded logprobs", async () => {
    await train("--steps", "1", "--retokenise");
    const [, first] = await readLog();
    expect(first).toMatchObject({ fresh_tokens: 0, changed_rows: expect.any(Number) });
  });
});

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { python, pythonObstacle } from "../../src/python/python.fixture.ts";

const program = fileURLToPath(new URL("../../examples/distil/distil.py", import.meta.url));

const why = pythonObstacle("torch", "numpy", "safetensors", "tokenizers");
if (why !== undefined) console.warn(`Skipping the distillation example: ${why}`);

let out: string;
beforeEach(async () => {
  out = await mkdtemp(path.join(tmpdir(), "turnwright-distil-"));
});
afterEach(async () => {
  await rm(out, { recursive: true });
});

interface Entry {
  readonly step: number;
  readonly reverse_kl: number;
  readonly tokens: number;
  readonly loss?: number;
}

async function distil(...flags: readonly string[]): Promise<readonly Entry[]> {
  const tiny = ["--out", out, "--steps", "1", "--tasks", "2"];
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
  await promisify(execFile)(python, [program, ...tiny, ...flags], { env });
  const text = await readFile(path.join(out, "log.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry);
}

describe.skipIf(why !== undefined)("examples/distil", () => {
  test("a student of fewer layers learns from the columns of the teacher", async () => {
    const log = await distil();
    expect(log.map(({ step, loss }) => [step, loss !== undefined])).toEqual([
      [0, true],
      [1, false],
    ]);
    for (const { reverse_kl: divergence, tokens } of log) {
      expect(divergence).toBeGreaterThan(0);
      expect(tokens).toBeGreaterThan(0);
    }
    expect(await readFile(path.join(out, "curve.svg"), "utf8")).toContain("reverse KL in nats");
    expect(await readdir(path.join(out, "policy"))).toEqual(["step-1"]);
    expect(await readdir(path.join(out, "runs/step-0/teachers"))).toContain("large.jsonl");
    await expect(distil()).rejects.toMatchObject({
      stderr: expect.stringContaining("it is not empty; choose another --out"),
    });
  });

  test("the teacher itself has no divergence from the teacher, and the sampled tokens alone train", async () => {
    const [first] = await distil("--layers", "0", "1", "2", "3", "4", "--top", "0");
    // The first weights are the teacher's, and its engine scores with the bits with which it samples.
    expect(first!.reverse_kl).toBeCloseTo(0, 4);
    expect(first!.loss).toBeCloseTo(0, 4);
  });
});

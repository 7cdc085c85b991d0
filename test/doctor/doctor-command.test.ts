import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type * as diagnosing from "../../examples/diagnose-run.ts";
import type { Diagnosis } from "../../src/doctor/index.ts";
import { type RandomModelConfig, writeRandomModel } from "../../src/engine/reference/index.ts";
import { openColumnFolder } from "../../src/run/columns/column-folder.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { callCli } from "../support/call-cli.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

let scratch = "";
let run = "";
let rows: readonly Sample[] = [];
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-doctor-"));
  run = path.join(scratch, "run");
  const model = path.join(root, "models/storefront-2m");
  const engine = ["--engine", "reference", "--threads", "1", "--model", model];
  const scope = ["--env", "storefront", "--user", "scripted", "--tasks", "0-1", "--samples", "1"];
  // The same turns each time, with calls among them.
  const draw = ["--split", "test", "--sampling-seed", "7"];
  const flags = [...engine, ...scope, ...draw, "--max-turns", "4", "--quiet", "--out", run];
  const { status, stderr } = await callCli(["rollout", ...flags]);
  expect(status, stderr).toBe(0);
  rows = await readSamples(run);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function readSamples(folder: string): Promise<readonly Sample[]> {
  const text = await readFile(path.join(folder, "samples.jsonl"), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
}

/** Writes a trainer's file, one line a row. */
async function writeTrainer(name: string, lines: readonly unknown[]): Promise<string> {
  const file = path.join(scratch, name);
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  await writeFile(file, texts.map((text) => `${text}\n`).join(""));
  return file;
}

/** A row as a right trainer writes it. */
function lineOf({ rolloutId, segment, logprobs, lossMask }: Sample) {
  const own = logprobs.map((logprob, index) => (lossMask[index] === 1 ? logprob : null));
  return { rolloutId, segment, logprobs: own, policyVersion: 3 };
}

async function doctor(...args: readonly string[]) {
  return await callCli(["doctor", run, "--trainer-logprobs", ...args]);
}

test("a healthy pair has the exit status 0", async () => {
  const file = await writeTrainer("healthy.jsonl", rows.map(lineOf));
  const { status, stdout, stderr } = await doctor(file, "--lag", "0");
  expect([status, stderr]).toEqual([0, ""]);
  const count = rows.flatMap(({ lossMask }) => lossMask.filter((bit) => bit === 1)).length;
  expect(stdout.split("\n")[0]).toBe(
    `Healthy: mean |d| is 0 nats over ${count} tokens, KL 0 nats.`,
  );
  // By text, so the run's tokenizer was found.
  expect(stdout).toContain("  tool call");
});

test("a finding has the exit status 1, its name first, and a picture", async () => {
  const shifted = rows.map((row) => {
    const line = lineOf(row);
    return { ...line, logprobs: [...line.logprobs.slice(1), null] };
  });
  const file = await writeTrainer("shifted.jsonl", shifted);
  const plot = path.join(scratch, "plot.svg");
  const { status, stdout } = await doctor(file, "--lag", "0", "--plot", plot);
  expect(status).toBe(1);
  expect(stdout).toMatch(/^shifted: The trainer's logprobs are shifted by one: /);
  expect(await readFile(plot, "utf8")).toContain(">verdict: shifted<");
});

test("lines that cannot be used are named", async () => {
  const [first, second] = rows.map(lineOf);
  const nan = JSON.stringify(second).replaceAll("null", "NaN");
  const file = await writeTrainer("odd.jsonl", ["{", { rolloutId: "x" }, first, "", nan]);
  const { status, stdout } = await doctor(file, "--json", "--lag", "0");
  expect(status).toBe(1);
  const { verdict, problems, counts } = JSON.parse(stdout) as Diagnosis;
  expect([verdict, counts.rowCount]).toEqual(["incomplete", 2]);
  expect(problems).toEqual([
    { kind: "not-json", rowCount: 1, examples: ["line 1: it is not JSON"] },
    {
      kind: "shape",
      rowCount: 1,
      examples: ['line 2: "segment" is missing or of another type, expected a whole number'],
    },
  ]);
});

test.each([
  ["--mean-difference", "many", "Cannot use --mean-difference many: expected a number, 0 or more"],
  ["--lag", "new", "Cannot use --lag new: expected a whole number, such as 0"],
])("a wrong %s is refused with the exit status 2", async (flag, value, message) => {
  const file = await writeTrainer("healthy.jsonl", rows.map(lineOf));
  const { status, stderr } = await doctor(file, flag, value);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

/** Plays a tiny mixture of experts with storefront's tokenizer. Returns the run's rows. */
async function playMixture(folder: string): Promise<readonly Sample[]> {
  const model = path.join(scratch, "mixture");
  await writeRandomModel(model, { config: mixture });
  for (const name of ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]) {
    await copyFile(path.join(root, "models/storefront-2m", name), path.join(model, name));
  }
  const engine = ["--engine", "reference", "--threads", "1", "--model", model];
  const scope = ["--env", "storefront", "--user", "scripted", "--tasks", "0-1", "--samples", "1"];
  const limits = ["--max-turns", "1", "--max-tokens-per-turn", "24", "--columns", "routedExperts"];
  const flags = [...engine, ...scope, ...limits, "--quiet", "--out", folder];
  const { status, stderr } = await callCli(["rollout", ...flags]);
  expect(status, stderr).toBe(0);
  return await readSamples(folder);
}

const mixture: RandomModelConfig = {
  architectures: ["Qwen3MoeForCausalLM"],
  vocab_size: 2944,
  hidden_size: 32,
  intermediate_size: 40,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 2048,
  tie_word_embeddings: true,
  num_experts: 8,
  num_experts_per_tok: 2,
  moe_intermediate_size: 24,
  norm_topk_prob: true,
};

test("routes of a run's files are compared with the trainer's", async () => {
  const folder = path.join(scratch, "mixture-run");
  const sampled = await playMixture(folder);
  await using columns = openColumnFolder(folder);
  const lines = await Promise.all(
    sampled.map(async (row) => {
      const parts = await Promise.all(
        row.columns!.routedExperts!.map((part) => columns.read(part)),
      );
      const bytes = Buffer.concat(parts);
      const shape = [bytes.length / 4, 2, 2];
      const routedExperts = { shape, dtype: "uint8", base64: bytes.toString("base64") };
      return { ...lineOf(row), routedExperts };
    }),
  );
  const call = ["doctor", folder, "--lag", "0", "--json", "--trainer-logprobs"];
  const right = await callCli([...call, await writeTrainer("routes.jsonl", lines)]);
  expect(right.status).toBe(0);
  const rowCount = lines.reduce((sum, { routedExperts }) => sum + routedExperts.shape[0]!, 0);
  expect((JSON.parse(right.stdout) as Diagnosis).routes).toMatchObject({
    tokenCount: rowCount,
    missingCount: 0,
    reorderedShare: 0,
  });
  const dropped = lines.map(({ routedExperts, ...line }) => {
    const base64 = Buffer.alloc(routedExperts.shape[0]! * 4).toString("base64");
    return { ...line, routedExperts: { ...routedExperts, base64 } };
  });
  const wrong = await callCli([...call, await writeTrainer("dropped.jsonl", dropped)]);
  expect(wrong.status).toBe(1);
  const { verdict, routes } = JSON.parse(wrong.stdout) as Diagnosis;
  expect([verdict, routes!.paddedShare]).toEqual(["routes-not-replayed", 1]);
});

test("a file that is not there is refused", async () => {
  const { status, stderr } = await doctor(path.join(scratch, "none.jsonl"));
  expect(status).toBe(2);
  expect(stderr).toContain(
    "expected a readable file of the trainer's logprobs, one JSON line a row",
  );
});

test("diagnose-run, the guide's program, throws for a finding", async () => {
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  const example = path.join(root, "dist/examples/diagnose-run.js");
  const { requireHealthy } = (await import(example)) as typeof diagnosing;
  await requireHealthy(run, await writeTrainer("right.jsonl", rows.map(lineOf)));
  await expect(requireHealthy(run, await writeTrainer("none.jsonl", []))).rejects.toThrow(
    "The trainer and the engine differ: Nothing could be compared",
  );
  expect(log).toHaveBeenCalledTimes(2);
  log.mockRestore();
});

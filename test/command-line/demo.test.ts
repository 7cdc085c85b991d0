import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunVerification } from "../../src/verify/verify-run.ts";
import type { FileRescoring } from "../../src/trajectory/rescore-file.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines, runCli } from "../support/run-cli.ts";

const modelDir = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let scratch = "";
let demoOutput = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-demo-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

function read(dir: string, name: string): Promise<string> {
  return readFile(path.join(scratch, dir, name), "utf8");
}

describe("turnwright demo", () => {
  test("plays with the shipped policy, verifies, and shows one conversation", async () => {
    const out = path.join(scratch, "demo");
    const { status, stdout } = await runCli(["demo", "--out", out]);
    demoOutput = stdout;
    expect(status, stdout).toBe(0);
    const summary = JSON.parse(await read("demo", "summary.json")) as { rewardMean: number };
    expect(summary).toMatchObject({
      end: "finished",
      planned: 128,
      finished: 128,
      scored: 128,
      outcomes: { failed: 0 },
    });
    // Far from perfect, and far from hopeless.
    expect(summary.rewardMean).toBeGreaterThan(0.3);
    expect(summary.rewardMean).toBeLessThan(0.7);
    expect(stdout).toContain("128 of 128");
    expect(stdout).toMatch(
      /\n {2}pass {7}\^1 0\.\d{3}, \^2 0\.\d{3}, \^3 0\.\d{3}, \^4 0\.\d{3} \(/,
    );
    expect(stdout).toContain("verified   all 128 samples");
    const shown = /One of them, (\S+), reward 1\./.exec(stdout)?.[1];
    const samples = jsonLines(await read("demo", "samples.jsonl")) as unknown as Sample[];
    const sample = samples.find(({ rolloutId }) => rolloutId === shown)!;
    expect(stdout.match(/⟦/g)).toHaveLength(sample.turns.length + 1);
    const lastLine = stdout.trimEnd().split("\n").at(-1)!;
    expect(lastLine).toMatch(/^ {2}(?:npx turnwright|npm run --silent turnwright --) view /);
    expect(lastLine.endsWith(` view ${out}`)).toBe(true);
    // The rows stand in the order of the plan, so that those of a group are together.
    expect(samples.map(({ rolloutId }) => rolloutId)).toEqual(
      Array.from({ length: 128 }, (_, at) => `storefront/test/${Math.floor(at / 4)}#${at % 4}`),
    );
  });

  test("prints the lines that docs/getting-started.md shows", async () => {
    const guide = await readFile(new URL("../../docs/getting-started.md", import.meta.url), "utf8");
    const [, shown = ""] = /`npm start` prints:\n\n```\n([^]*?)```/.exec(guide)!;
    // Times and speeds differ, and so do the names of folders.
    const lasting = shown
      .split("\n")
      .filter((line) => !/tok\/s|sampled\/s|^ {2}(?:time|samples|for slime) |^ {2}… *$/.test(line));
    expect(lasting.length).toBeGreaterThan(40);
    const printed = new Set(demoOutput.split("\n"));
    expect(lasting.filter((line) => !printed.has(line))).toEqual([]);
  });

  test("finds a reward that was changed after the run", async () => {
    const forged = path.join(scratch, "forged");
    await cp(path.join(scratch, "demo"), forged, { recursive: true });
    const rows = await read("demo", "samples.jsonl");
    await writeFile(
      path.join(forged, "samples.jsonl"),
      rows.replaceAll('"reward":0,', '"reward":1,'),
    );
    const { status, stdout } = await callCli(["verify", forged]);
    expect(status).toBe(1);
    const { violations } = jsonLines(stdout)[0] as unknown as RunVerification;
    const rules = new Set(violations.map(({ file, rule }) => `${file} ${rule}`));
    expect([...rules].toSorted()).toEqual([
      "samples.jsonl episode-reward",
      "samples.jsonl row-changed",
    ]);
  });

  test("finds tokens that were sampled at another temperature", async () => {
    // As many as it takes to see it.
    const rows = (await read("demo", "samples.jsonl")).split("\n").slice(0, 16);
    const file = path.join(scratch, "demo", "first-samples.jsonl");
    await writeFile(file, `${rows.join("\n")}\n`);
    const { status, stdout } = await callCli([
      "verify",
      "--rescore",
      file,
      "--temperature",
      "0.5",
      "--tolerance",
      "0.01",
    ]);
    expect(status).toBe(1);
    const rescore = jsonLines(stdout)[0]!["rescore"] as FileRescoring;
    expect(rescore.beyondToleranceCount).toBeGreaterThan(100);
    const { line, index, tokenId, recorded } = rescore.largest!;
    const sample = JSON.parse(rows[line - 1]!) as Sample;
    expect(sample.tokenIds[index]).toBe(tokenId);
    expect(sample.logprobs[index]).toBe(recorded);
  });

  test.each([
    [["--seed", "x"], "Cannot use --seed x: expected a whole number, 0 or more"],
    [["--tasks", "33"], "Cannot use --tasks 33: expected a number of tasks from 1 to 32"],
    [["--env", "tau-retail"], "Cannot use --env without --stand-in"],
    [["--stand-in", "--mistakes", "2"], "Cannot use --mistakes 2: expected a number from 0 to 1"],
  ])("refuses %j", async (flags, complaint) => {
    const { status, stderr } = await callCli(["demo", ...flags]);
    expect(stderr).toBe(`turnwright: ${complaint}\n`);
    expect(status).toBe(2);
  });
});

describe("turnwright rollout --engine reference", () => {
  async function play(name: string, more: readonly string[]): Promise<readonly string[]> {
    const { status, stdout } = await callCli([
      "rollout",
      "--engine",
      "reference",
      "--model",
      modelDir,
      "--env",
      "storefront",
      "--tasks",
      "0-3",
      "--samples",
      "2",
      "--user",
      "scripted",
      "--sampling-seed",
      "7",
      "--max-tokens-per-turn",
      "128",
      "--format",
      "slime",
      "--out",
      path.join(scratch, name),
      ...more,
    ]);
    expect(status, stdout).toBe(0);
    const slime = jsonLines(await read(name, "samples.slime.jsonl"));
    // Measured values differ between starts.
    const repeatable = slime.map((row) => ({
      ...(row as object),
      non_generation_time: undefined,
      prefix_cache_info: undefined,
    }));
    return [await read(name, "samples.jsonl"), JSON.stringify(repeatable)];
  }

  test("gives the same bytes for the same seed, however it is computed", async () => {
    const first = await play("first", ["--threads", "1", "--concurrency", "2"]);
    expect(await play("second", ["--threads", "2", "--concurrency", "8"])).toEqual(first);
    expect(await play("third", ["--threads", "1", "--sampling-seed", "8"])).not.toEqual(first);
  });

  test("its sampled tokens are scored again, exactly", async () => {
    const { status, stdout } = await runCli(
      // The engine, the model and the temperature are found in the run.
      ["verify", "--rescore", path.join(scratch, "first")],
    );
    expect(status, stdout).toBe(0);
    const [line] = jsonLines(stdout);
    expect(line).toMatchObject({ isFinished: true, violations: [] });
    expect(line).toMatchObject({ samples: line!["episodes"], episodes: line!["planned"] });
    const rescore = line!["rescore"] as FileRescoring;
    expect(rescore).toMatchObject({ engine: "reference", temperature: 1, skipped: [] });
    expect(rescore.tokenCount).toBeGreaterThan(500);
    expect(rescore.largest!.difference).toBeLessThan(1e-5);
  });

  test("refuses settings of other engines", async () => {
    const { status, stderr } = await callCli([
      "rollout",
      "--engine",
      "reference",
      "--model",
      modelDir,
      "--env",
      "storefront",
      "--user",
      "scripted",
      "--url",
      "http://127.0.0.1:9",
    ]);
    expect(stderr).toBe(
      "turnwright: Cannot use --url with --engine reference: it belongs to sglang, vllm, llama-cpp, chat\n",
    );
    expect(status).toBe(2);
  });
});

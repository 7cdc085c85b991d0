import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeSoundRun } from "../../verify/sound-run.fixture.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { SlimeSample } from "./slime.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-slime-"));
  await writeSoundRun(scratch);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function readRows<Row>(name: string): Promise<readonly Row[]> {
  const text = await readFile(path.join(scratch, name), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Row);
}

test("a run's slime file has complete groups, in order, with one rollout id an attempt", async () => {
  const rows = await readRows<SlimeSample>("samples.slime.jsonl");
  expect(rows.map((row) => [row.group_index, row.index, row.rollout_id, row.reward])).toEqual([
    [0, 0, 0, 1],
    [0, 1, 1, 0],
    [1, 2, 2, 0],
    [1, 3, 3, 1],
    // The first attempt has two rows.
    [2, 4, 4, 1],
    [2, 4, 4, 1],
    [2, 5, 5, 1],
  ]);
  for (const row of rows) {
    expect(row.response_length).toBeGreaterThan(0);
    expect(row.tokens.length).toBeGreaterThan(row.response_length);
    expect(row.loss_mask).toHaveLength(row.response_length);
    expect(row.rollout_log_probs).toHaveLength(row.response_length);
    expect(row.loss_mask).toContain(1);
  }
  const summary = JSON.parse(await readFile(path.join(scratch, "summary.json"), "utf8")) as object;
  expect(summary).toMatchObject({
    slime: { groups: 3, rows: 7, leftOut: { unscored: 1 } },
  });
});

/** Returns a Python with slime's requirements and the folder with slime's code, or `null` if they are absent. */
function findTrainer(): { python: string; trainers: string; program: string } | null {
  const program = fileURLToPath(new URL("../../../integrations/accept/slime.py", import.meta.url));
  const trainers = process.env["TURNWRIGHT_TRAINERS"];
  const python = process.env["TURNWRIGHT_TRAINERS_PYTHON"] ?? "python3";
  if (trainers !== undefined && existsSync(path.join(trainers, "src/slime"))) {
    return { python, trainers, program };
  }
  console.warn(
    "Skipping slime's own code: set TURNWRIGHT_TRAINERS to a folder with slime's sources in src/slime, " +
      "and TURNWRIGHT_TRAINERS_PYTHON to a Python with torch, ray, httpx and PIL",
  );
  return null;
}

const trainer = findTrainer();

test.skipIf(trainer === null)(
  "slime's own code takes the file, and trains on the sampled ids alone",
  async () => {
    const { python, trainers, program } = trainer!;
    const exported = path.join(scratch, "samples.slime.jsonl");
    const rollouts = new Set(
      (await readRows<SlimeSample>("samples.slime.jsonl")).map(
        ({ metadata }) => metadata["rollout"],
      ),
    );
    const samples = await readRows<Sample>("samples.jsonl");
    const given = path.join(scratch, "given.jsonl");
    const rows = samples.filter(({ rolloutId }) => rollouts.has(rolloutId));
    await writeFile(given, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const { stdout } = await promisify(execFile)(python, [program, given, exported], {
      env: { ...process.env, TRAINERS: trainers },
    });
    const sampledCount = rows.flatMap(({ lossMask }) => lossMask).filter((bit) => bit === 1).length;
    expect(stdout).toContain(`slime: 7 rows, ${sampledCount} trained tokens: accepted`);
  },
);

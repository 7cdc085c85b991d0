import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exportRun } from "../../src/export/export-run.ts";
import { exporters, type ExportTarget } from "../../src/export/exporters.ts";
import { prepareGroup } from "../../src/export/prepare-group.ts";
import { readRunGroups } from "../../src/export/read-run-groups.ts";
import { aglRules, toAglEvents } from "../../src/service/agent-lightning/agl-events.ts";
import { writeSeveralRowsRun } from "./several-rows-run.fixture.ts";

const programs = fileURLToPath(new URL("../../integrations/accept/rows", import.meta.url));
const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
const trainers = process.env["TURNWRIGHT_TRAINERS"];
const python = process.env["TURNWRIGHT_TRAINERS_PYTHON"] ?? "python3";

/** Trainers of the programs, and the files of each that a program runs. */
const parts: Readonly<Record<string, readonly string[]>> = {
  slime: ["src/slime"],
  miles: ["src/miles"],
  trl: [],
  verl: ["pkgs/verl"],
  skyrl: ["pkgs/skyrl"],
  openrlhf: ["pkgs/openrlhf"],
  areal: ["pkgs/areal"],
  "prime-rl": ["src/prime-rl", "src/verifiers"],
  verifiers: ["pkgs/verifiers"],
  "nemo-rl": ["src/RL"],
  tinker: ["pkgs/tinker-cookbook"],
  "agent-lightning": ["pkgs/agentlightning", "pkgs/verl"],
  art: ["pkgs/openpipe-art"],
};
const names = Object.keys(parts);

function missingFor(name: string): readonly string[] {
  if (trainers === undefined) return ["TURNWRIGHT_TRAINERS is not set"];
  return parts[name]!.filter((part) => !existsSync(path.join(trainers, part)));
}

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rows-"));
  await writeSeveralRowsRun(scratch);
  for (const name of names) {
    const missing = missingFor(name);
    if (missing.length === 0) continue;
    console.warn(`Skipping ${name}'s own code: ${missing.join(", ")} (accept -- --rows ${name})`);
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("the run has two groups of four attempts, with 1, 3, 2, 1 and 1, 1, 2, 1 rows", async () => {
  const counts = new Map<string, number>();
  for (const { rolloutId } of await readSamples()) {
    counts.set(rolloutId, (counts.get(rolloutId) ?? 0) + 1);
  }
  expect([...counts]).toEqual(
    [1, 3, 2, 1, 1, 1, 2, 1].map((rowCount, index) => [
      `lamps/train/${Math.floor(index / 4)}#${index % 4}`,
      rowCount,
    ]),
  );
});

test("each trainer has a program and pinned requirements", async () => {
  const isProgram = (name: string) => name.endsWith(".py") && name !== "several_rows.py";
  const files = names.map((name) => name.replace("-", "_"));
  expect((await readdir(programs)).filter(isProgram).toSorted()).toEqual(
    files.map((name) => `${name}.py`).toSorted(),
  );
  expect((await readdir(path.join(programs, "requirements"))).toSorted()).toEqual(
    names.map((name) => `${name}.txt`).toSorted(),
  );
  expect(Object.keys(exporters).filter((to) => !names.includes(to))).toEqual([]);
});

describe("the trainer's own code weighs an attempt with several rows as one", () => {
  for (const name of names) {
    test.skipIf(missingFor(name).length > 0)(name, async () => {
      const given = path.join(scratch, "samples.jsonl");
      const program = path.join(programs, `${name.replace("-", "_")}.py`);
      const { stdout } = await promisify(execFile)(
        python,
        [program, given, await exportFor(name)],
        {
          env: {
            ...process.env,
            TRAINERS: trainers,
            MODEL: model,
            TMPDIR: scratch,
            VERIFIERS_EXPORT: await exportFor("verifiers"),
          },
        },
      );
      console.log(stdout.trim());
      const trainedCount = (await readSamples())
        .flatMap(({ lossMask }) => lossMask)
        .filter((bit) => bit === 1).length;
      expect(stdout).toContain(
        `${name}: 8 attempts, 12 rows, ${trainedCount} trained tokens: each attempt weighs one`,
      );
    });
  }
});

interface Row {
  readonly rolloutId: string;
  readonly lossMask: readonly number[];
}

async function readSamples(): Promise<readonly Row[]> {
  const text = await readFile(path.join(scratch, "samples.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);
}

/** Returns the file with the form of a trainer. agent-lightning receives events over HTTP. */
async function exportFor(name: string): Promise<string> {
  const file = path.join(scratch, `exported.${name}`);
  if (name in exporters) {
    await writeFile(file, (await exportRun(scratch, name as ExportTarget)).content);
    return file;
  }
  const lines = [];
  for await (const members of (await readRunGroups(scratch)).groups()) {
    const { attempts } = prepareGroup(members, { rules: aglRules });
    lines.push(...attempts.map((attempt) => ({ events: toAglEvents(attempt, "policy") })));
  }
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

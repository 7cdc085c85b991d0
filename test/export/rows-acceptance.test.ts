import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Exporter, ReadyAttempt } from "../../src/export/exporter.ts";
import { exportRun } from "../../src/export/export-run.ts";
import { exporters, type ExportTarget } from "../../src/export/exporters.ts";
import { isWhole, prepareGroup } from "../../src/export/prepare-group.ts";
import { readRunGroups } from "../../src/export/read-run-groups.ts";
import { aglEvents, aglRules } from "../../src/service/agent-lightning/agl-events.ts";
import { countTrained } from "../../src/trajectory/count-trained.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { writeSeveralRowsRun } from "./several-rows-run.fixture.ts";
import { python } from "../../src/python/python.fixture.ts";

const programs = fileURLToPath(new URL("../../integrations/accept/rows", import.meta.url));
const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));
/** A run to weigh in place of the fixture's. Its groups have one size, and no attempt has its group's mean reward. */
const otherRun = process.env["TURNWRIGHT_ROWS_RUN"];
const trainers = process.env["TURNWRIGHT_TRAINERS"];

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
let run = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rows-"));
  const own = path.join(scratch, "run");
  run = otherRun ?? own;
  await writeSeveralRowsRun(own);
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
  const text = await readFile(path.join(scratch, "run/samples.jsonl"), "utf8");
  const counts = new Map<string, number>();
  for (const line of text.trim().split("\n")) {
    const { rolloutId } = JSON.parse(line) as Sample;
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
      const { attempts, rows, file: given } = await writeGiven(name);
      const program = path.join(programs, `${name.replace("-", "_")}.py`);
      const env = {
        ...process.env,
        TRAINERS: trainers,
        MODEL: model,
        TMPDIR: scratch,
        VERIFIERS_EXPORT: await writeExport("verifiers"),
      };
      const args = [program, given, await writeExport(name)];
      const { stdout } = await promisify(execFile)(python, args, { env });
      console.log(stdout.trim());
      const trainedCount = rows.reduce((sum, { lossMask }) => sum + countTrained(lossMask), 0);
      const counts = `${attempts} attempts, ${rows.length} rows, ${trainedCount} trained tokens`;
      expect(stdout).toContain(`${name}: ${counts}: each attempt weighs one`);
    });
  }
});

/** The version of tokens whose engine named none, for trainers that count versions. */
const versions = { policyVersion: 0 };

/** Writes all rows of the attempts that the trainer gets. Some trainers get one row of each. */
async function writeGiven(name: string) {
  const { rules } = name in exporters ? exporters[name as ExportTarget] : { rules: aglRules };
  const keep = { ...rules, segments: { ...rules.segments, action: "keep" } } as const;
  const given = await readyAttempts({ rules: keep });
  const rows = given.flatMap((attempt) => attempt.rows.map(({ sample }) => named(sample)));
  const file = path.join(scratch, `given.${name}.jsonl`);
  await writeFile(file, toLines(rows));
  return { attempts: given.length, rows, file };
}

/** Returns a row in which each version is a whole number, as shims for such trainers require. */
function named(row: Sample): Sample {
  const name = (version: string): string =>
    version === "" || isWhole(version) ? version : String(versions.policyVersion);
  return { ...row, policyVersions: row.policyVersions.map(name) };
}

/** Writes the run in the form of a trainer. agent-lightning receives events over HTTP. */
async function writeExport(name: string): Promise<string> {
  const file = path.join(scratch, `exported.${name}`);
  if (name in exporters) {
    await writeFile(file, (await exportRun(run, name as ExportTarget, versions)).content);
    return file;
  }
  const attempts = await readyAttempts({ rules: aglRules });
  const records: object[] = [];
  for (const attempt of attempts) {
    const events: object[] = [];
    for await (const event of aglEvents(attempt, { model: "policy" })) events.push(event);
    records.push({ events });
  }
  await writeFile(file, toLines(records));
  return file;
}

async function readyAttempts(exporter: Pick<Exporter, "rules">): Promise<readonly ReadyAttempt[]> {
  const found = [];
  for await (const members of (await readRunGroups(run)).groups()) {
    found.push(...prepareGroup(members, exporter, versions).attempts);
  }
  return found;
}

function toLines(values: readonly object[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeEveryKindRun } from "./every-kind-run.fixture.ts";
import { exportRun } from "./export-run.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { prepareGroup } from "./prepare-group.ts";
import { readRunGroups } from "./read-run-groups.ts";
import { python } from "../python/python.fixture.ts";

const programs = fileURLToPath(new URL("../../integrations/accept", import.meta.url));
const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

/**
 * Folder in which `npm run accept` installs the trainers' packages and sources, and the Python that
 * imports them.
 */
const trainers = process.env["TURNWRIGHT_TRAINERS"];

/** The trainer's own files that each program runs. */
const parts: Readonly<Record<ExportTarget, readonly string[]>> = {
  slime: ["src/slime"],
  miles: ["src/miles"],
  trl: [],
  verl: ["pkgs/verl"],
  skyrl: ["pkgs/skyrl"],
  openrlhf: ["pkgs/openrlhf"],
  areal: ["pkgs/areal"],
  "prime-rl": ["src/prime-rl"],
  verifiers: ["pkgs/verifiers"],
  "nemo-rl": ["src/RL"],
  tinker: [],
  art: ["pkgs/openpipe-art"],
};

const targets = Object.keys(exporters) as ExportTarget[];

function missingFor(to: ExportTarget): readonly string[] {
  if (trainers === undefined) return ["TURNWRIGHT_TRAINERS is not set"];
  return parts[to].filter((part) => !existsSync(path.join(trainers, part)));
}

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-accept-"));
  await writeEveryKindRun(scratch);
  for (const to of targets) {
    const missing = missingFor(to);
    if (missing.length === 0) continue;
    console.warn(`Skipping ${to}'s own code: ${missing.join(", ")} (npm run accept -- ${to})`);
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("each exporter has an acceptance program and pinned requirements", async () => {
  const names = targets.map((to) => to.replace("-", "_"));
  const found = (await readdir(programs)).filter((name) => name.endsWith(".py"));
  expect(found.toSorted()).toEqual(
    [...names, "common", "read_tables"].map((name) => `${name}.py`).toSorted(),
  );
  const pinned = await readdir(path.join(programs, "requirements"));
  expect(pinned.toSorted()).toEqual([...targets, "base"].map((name) => `${name}.txt`).toSorted());
});

describe("the trainer's own code takes an export of every kind of episode", () => {
  for (const to of targets) {
    test.skipIf(missingFor(to).length > 0)(to, async () => {
      const { given, trainedCount } = await writeGiven(to);
      const file = path.join(scratch, `exported.${to}`);
      await writeFile(file, (await exportRun(scratch, to)).content);
      const program = path.join(programs, `${to.replace("-", "_")}.py`);
      const rowCount = (await readFile(given, "utf8")).trim().split("\n").length;
      for (const [variables, how] of waysOf(to)) {
        const { stdout } = await promisify(execFile)(python, [program, given, file], {
          env: { ...process.env, TRAINERS: trainers, MODEL: model, TMPDIR: scratch, ...variables },
        });
        expect(stdout).toContain(
          `${rowCount} rows, ${trainedCount} trained tokens: accepted${how}`,
        );
      }
    });
  }
});

/** The variables that a program runs with, and its output. */
function waysOf(to: ExportTarget): readonly (readonly [Record<string, string>, string])[] {
  if (to !== "verifiers") return [[{}, ""]];
  const alone = [{}, " as verifiers' Branch only"] as const;
  // prime-rl's conversion goes with one commit of verifiers, and not with the package of today.
  const pair = ["src/verifiers", "src/prime-rl"].map((part) => path.join(trainers!, part));
  if (!pair.every((part) => existsSync(part))) {
    console.warn(`Skipping prime-rl's conversion of verifiers' traces: no ${pair.join(", ")}`);
    return [alone];
  }
  return [alone, [{ VERIFIERS: pair[0]! }, " also by prime-rl's trace_to_samples"]];
}

/** The rows of samples that an export comes from, as the program reads them next to it. */
async function writeGiven(to: ExportTarget) {
  const samples = [];
  for await (const members of (await readRunGroups(scratch)).groups()) {
    const { attempts } = prepareGroup(members, exporters[to]);
    samples.push(...attempts.flatMap(({ rows }) => rows.map(({ sample }) => sample)));
  }
  const given = path.join(scratch, `given.${to}.jsonl`);
  await writeFile(given, samples.map((sample) => `${JSON.stringify(sample)}\n`).join(""));
  const trainedCount = samples
    .flatMap(({ lossMask }) => lossMask)
    .filter((bit) => bit === 1).length;
  return { given, trainedCount };
}

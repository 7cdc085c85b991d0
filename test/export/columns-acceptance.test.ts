import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ColumnSpecs } from "../../src/columns/index.ts";
import { writeColumnRun } from "../../src/export/columns/column-run.fixture.ts";
import { arrayBytes, arraysFileOf } from "../../src/export/columns/column-sink.ts";
import type { ArrayType } from "../../src/export/columns/array-type.ts";
import { exportRun } from "../../src/export/export-run.ts";
import { agentLightningColumnRules } from "../../src/export/columns/agent-lightning-columns.ts";
import { exporters, type ExportTarget } from "../../src/export/exporters.ts";
import { prepareGroup } from "../../src/export/prepare-group.ts";
import { readRunGroups } from "../../src/export/read-run-groups.ts";
import { openColumnFolder } from "../../src/run/columns/column-folder.ts";
import type { TeacherChoice } from "../../src/export/teacher/teacher-export.ts";
import { teacherExports } from "../../src/export/teacher/teacher-exports.ts";
import { addTeacher } from "../../src/export/teacher/teacher-run.fixture.ts";
import { writeAtomically } from "../../src/run/disk/write-atomically.ts";
import { aglEvents, aglRules } from "../../src/service/agent-lightning/agl-events.ts";
import { verifyExport } from "../../src/verify/exported/verify-export.ts";
import { python, pythonObstacle } from "../../src/python/python.fixture.ts";

const programs = fileURLToPath(new URL("../../integrations/accept/columns", import.meta.url));
const trainers = process.env["TURNWRIGHT_TRAINERS"];

/** Trainers of the programs, and the files of each that a program runs. */
const parts = {
  slime: ["src/slime"],
  miles: ["src/miles"],
  verl: ["pkgs/verl"],
  skyrl: ["pkgs/skyrl"],
  "prime-rl": ["src/prime-rl"],
  verifiers: ["pkgs/verifiers"],
  "nemo-rl": ["src/RL"],
  art: ["pkgs/openpipe-art"],
  "agent-lightning": ["pkgs/agentlightning", "pkgs/verl"],
  trl: [],
  tinker: ["pkgs/tinker-cookbook"],
} as const satisfies Partial<Record<ExportTarget | "agent-lightning", readonly string[]>>;
type Name = keyof typeof parts;
const names = Object.keys(parts) as Name[];

/** The experts of a layer. Above 256, ids have two bytes, which agent-lightning would cut. */
const expertCountsOf = (name: Name) => (name === "agent-lightning" ? [8, 256] : [8, 300]);

/** The columns of a run that a trainer takes. Routes alone if it takes none. */
function specsOf(name: Name, expertCount: number): ColumnSpecs {
  const all: Required<ColumnSpecs> = {
    routedExperts: { layerCount: 4, perToken: 2, expertCount },
    keptTokens: { maxCount: 4 },
    topLogprobs: { count: 3 },
    indexerTopK: { layerCount: 2, perToken: 3 },
  };
  const rules =
    name === "agent-lightning" ? agentLightningColumnRules : exporters[name].columns.rules;
  const taken = Object.entries(all).filter(
    ([column]) => rules[column as keyof ColumnSpecs].action === "export",
  );
  return Object.fromEntries(taken.length > 0 ? taken : [["routedExperts", all.routedExperts]]);
}

function missingFor(name: Name): readonly string[] {
  if (trainers === undefined) return ["TURNWRIGHT_TRAINERS is not set"];
  return parts[name].filter((part) => !existsSync(path.join(trainers, part)));
}

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-columns-"));
  for (const name of names) {
    const missing = missingFor(name);
    if (missing.length === 0) continue;
    console.warn(
      `Skipping ${name}'s own code: ${missing.join(", ")} (accept -- --columns ${name})`,
    );
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** The teachers' columns that a trainer takes, in the order of its program's arguments. */
function teachersOf(name: ExportTarget): readonly TeacherChoice[] {
  const { logprobs, top } = teacherExports[name];
  return [
    ...(logprobs.action === "export" ? [{ name: "large" }] : []),
    ...(top.action === "export" ? [{ name: "wide", hasTop: true }] : []),
  ];
}

test("each trainer with a field for columns has a program and pinned requirements", async () => {
  const taking = Object.entries(exporters).filter(([, { columns }]) => columns.add !== undefined);
  const taught = Object.entries(teacherExports).filter(
    ([, { logprobs, top }]) => logprobs.action === "export" || top.action === "export",
  );
  const wanted = new Set([...taking, ...taught].map(([name]) => name)).add("agent-lightning");
  expect([...wanted].toSorted()).toEqual(names.toSorted());
  const files = (await readdir(programs)).filter((name) => name.endsWith(".py"));
  expect(files.toSorted()).toEqual(
    [...names, "column_rows"].map((name) => `${name.replace("-", "_")}.py`).toSorted(),
  );
  expect((await readdir(path.join(programs, "requirements"))).toSorted()).toEqual(
    names.map((name) => `${name}.txt`).toSorted(),
  );
});

describe("the trainer's own code reads each column at its token", () => {
  for (const name of names) {
    test.skipIf(missingFor(name).length > 0)(name, async () => {
      for (const expertCount of expertCountsOf(name)) {
        const run = path.join(scratch, `${name}-${expertCount}`);
        const truth = await writeColumnRun(run, specsOf(name, expertCount));
        const truthFile = path.join(scratch, `truth-${name}-${expertCount}.jsonl`);
        await writeFile(truthFile, truth.map((row) => `${JSON.stringify(row)}\n`).join(""));
        const file = path.join(scratch, `exported-${expertCount}.${name}`);
        const files = await writeForm(run, name, file);
        const program = path.join(programs, `${name.replace("-", "_")}.py`);
        const { stdout } = await promisify(execFile)(python, [program, run, truthFile, ...files], {
          env: { ...process.env, TRAINERS: trainers, TMPDIR: scratch },
        });
        console.log(`${expertCount} experts: ${stdout.trim()}`);
        expect(stdout).toContain(": accepted");
      }
    });
  }
});

/** Prints the arrays of each export: their element types, shapes and bytes. */
const readArrays = `
import hashlib, json, sys
import numpy
from turnwright import read_export

def arrays_in(value):
    if isinstance(value, numpy.ndarray):
        yield [value.dtype.name, list(value.shape), hashlib.sha256(value.tobytes()).hexdigest()]
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(one)

print(json.dumps([[one for record in read_export(file) for one in arrays_in(record)] for file in sys.argv[1:]]))
`;

const whyNoPython = pythonObstacle("numpy");
if (whyNoPython !== undefined) console.warn(`Skipping Python's read_export(): ${whyNoPython}`);

test.skipIf(whyNoPython !== undefined)(
  "Python's read_export() yields the arrays of every trainer's export",
  async () => {
    const files: string[] = [];
    for (const name of names.filter((one) => one !== "agent-lightning")) {
      const run = path.join(scratch, `${name}-read`);
      await writeColumnRun(run, specsOf(name, 300));
      files.push(...(await writeForm(run, name, path.join(scratch, `read.${name}`))));
    }
    const { stdout } = await promisify(execFile)(python, ["-c", readArrays, ...files], {
      cwd: path.join(programs, "../../python"),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    });
    const expected = await Promise.all(files.map(arraysOf));
    expect(JSON.parse(stdout)).toEqual(expected);
    const types = expected.flat().map(([type]) => type);
    expect([...new Set(types)].toSorted()).toEqual(["float32", "int16", "int32", "uint16"]);
  },
);

interface ArrayPlace {
  readonly offset: number;
  readonly shape: readonly number[];
  readonly dtype: ArrayType;
}

/** Returns the type, shape and hash of each array of an export, in the order of its places. */
async function arraysOf(file: string): Promise<readonly (readonly [string, ...unknown[]])[]> {
  const places: ArrayPlace[] = [];
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  for (const line of lines) {
    JSON.parse(line, (_, value: unknown) => {
      if (typeof value === "object" && value !== null && "offset" in value && "dtype" in value) {
        places.push(value as ArrayPlace);
      }
      return value;
    });
  }
  if (places.length === 0) return [];
  const content = await readFile(arraysFileOf(file));
  return places.map(({ offset, shape, dtype }) => {
    const bytes = content.subarray(offset, offset + arrayBytes(shape, dtype));
    return [dtype, shape, createHash("sha256").update(bytes).digest("hex")];
  });
}

/**
 * Writes the run in a trainer's form: a file without a teacher, and one for each teacher. agent-lightning receives
 * events over HTTP.
 */
async function writeForm(run: string, name: Name, file: string): Promise<readonly string[]> {
  if (name === "agent-lightning") {
    await writeEvents(run, file);
    return [file];
  }
  await writeAtomically(file, (await exportRun(run, name, { file })).content);
  expect((await verifyExport(file, name, { run })).violations).toEqual([]);
  await addTeacher(run, { name: "large" });
  await addTeacher(run, { name: "wide", topCount: 3 });
  const files = [file];
  for (const teacher of teachersOf(name)) {
    const taught = `${file}-${teacher.name}`;
    const { content } = await exportRun(run, name, { file: taught, teacher });
    await writeAtomically(taught, content);
    expect((await verifyExport(taught, name, { run, teacher })).violations).toEqual([]);
    files.push(taught);
  }
  return files;
}

async function writeEvents(run: string, file: string): Promise<void> {
  await using source = openColumnFolder(run);
  const { columns: specs, ...read } = await readRunGroups(run);
  const lines: string[] = [];
  for await (const members of read.groups()) {
    for (const attempt of prepareGroup(members, { rules: aglRules }).attempts) {
      const about = { model: "policy", columns: { specs, source } };
      const events: object[] = [];
      for await (const event of aglEvents(attempt, about)) events.push(event);
      lines.push(`${JSON.stringify({ id: attempt.rolloutId, events })}\n`);
    }
  }
  await writeFile(file, lines.join(""));
}

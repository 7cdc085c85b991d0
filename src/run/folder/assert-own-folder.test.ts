import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { assertOwnFolder } from "./assert-own-folder.ts";
import { evaluationFiles } from "./evaluation-files.ts";
import { diskFiles } from "../disk/files.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-own-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test.each([
  [[]],
  [["run.lock", "run.json.next", "samples.jsonl", "queue.json"]],
  [["episodes.jsonl", ...Object.values(evaluationFiles)]],
  [["report.md", "results.tau-bench.json"]],
  [["episodes.jsonl", "errors.jsonl", "errors.json", "errors.tau-bench.json", "errors.json.next"]],
  [["train.log", "slurm-1.out", ".gitkeep"]],
  [["run.json", "checkpoints", "notes.md"]],
])("takes a folder with %j", async (names) => {
  for (const name of names) await writeFile(path.join(dir, name), "");
  await assertOwnFolder({ dir, name: dir }, diskFiles);
});

test.each(["evaluation.json", "errors.jsonl"])(
  "refuses a folder with %s and without a run",
  async (name) => {
    await writeFile(path.join(dir, name), "");
    await expect(assertOwnFolder({ dir, name: dir }, diskFiles)).rejects.toThrow(
      `it holds ${name} and is not a run's folder`,
    );
  },
);

test("refuses a folder with other files and no run, and names some of them", async () => {
  for (const name of ["package.json", "README.md", "b.py"])
    await writeFile(path.join(dir, name), "");
  await mkdir(path.join(dir, "src"));
  await expect(assertOwnFolder({ dir, name: dir }, diskFiles)).rejects.toThrow(
    `Cannot start a run in ${dir}: it holds README.md, b.py, package.json and more and is not a run's folder, ` +
      `expected a new or an empty one, such as ${path.join(dir, "first")}`,
  );
});

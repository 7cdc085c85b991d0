import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
// @ts-expect-error The checks of the program have no types.
import { diskFaults, formFaults, groupFaults, hashesOnDisk } from "./delivered-group.mjs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

const program = fileURLToPath(new URL("kill-several-rows.mjs", import.meta.url));

/** A row with two trained tokens, and a masked one after them. */
function row(place: number, rowCount: number) {
  const lineage = { role: "main", row: place, rowCount, attemptTokenCount: 2 * rowCount };
  return {
    rolloutId: "lamps/train/4#0",
    tokenIds: [1, 2, 10 * place + 3, 4, 5],
    lossMask: [0, 0, 1, 1, 0],
    turns: [{ turnIndex: place }],
    reward: 0.5,
    metadata: rowCount > 1 ? { lineage } : {},
  };
}

function group(rows: readonly object[], more: object = {}) {
  const attempt = { rolloutId: "lamps/train/4#0", sampleIndex: 0, outcome: "completed" };
  return { groupId: "lamps/train/4", attempts: [{ ...attempt, reward: 0.5, rows, ...more }] };
}

const whole = [row(0, 3), row(1, 3), row(2, 3)];

test.each<[string, readonly object[], object, readonly string[]]>([
  ["nothing in a whole attempt", whole, {}, []],
  ["nothing in one with one row", [row(0, 1)], {}, []],
  [
    "a lost last row",
    whole.slice(0, 2),
    {},
    ["2 rows of 3", "4 trained tokens of 6", "2 rows of 3", "4 trained tokens of 6"],
  ],
  [
    "exchanged rows",
    [whole[1]!, whole[0]!, whole[2]!],
    {},
    ["row 1 at 0", "row 0 at 1", "rows in the order 1,0,2"],
  ],
  ["a lone row of two", [row(0, 2)], {}, ["1 rows of 2", "lineage at 0", "2 trained tokens of 4"]],
  ["no rows", [], {}, ["no rows"]],
  ["a divided reward", [row(0, 1)], { reward: 1 }, ["row 0 has the reward 0.5"]],
  ["nothing in one that met a limit", [row(0, 1)], { outcome: "truncated" }, []],
  ["an aborted attempt", [row(0, 1)], { outcome: "aborted" }, ["its outcome is aborted"]],
])("the checks on a delivered group find %s", (_, rows, more, faults) => {
  expect(groupFaults(group(rows, more), 1)).toEqual(
    faults.map((fault) => `lamps/train/4#0: ${fault}`),
  );
});

test("the checks find a missing attempt", () => {
  expect(groupFaults(group(whole), 2)).toEqual(["1 attempts of 2"]);
});

test("the checks compare rows with the complete lines of the folder", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-rows-"));
  const lines = whole.map((each) => `${JSON.stringify(each)}\n`).join("");
  const fault = ["lamps/train/4#0: the folder has other rows"];
  try {
    expect(diskFaults(group(whole), hashesOnDisk(dir))).toEqual(fault);
    await writeFile(path.join(dir, "samples.jsonl"), lines);
    expect(diskFaults(group(whole), hashesOnDisk(dir))).toEqual([]);
    expect(diskFaults(group(whole.toReversed()), hashesOnDisk(dir))).toEqual(fault);
    await writeFile(path.join(dir, "samples.jsonl"), lines.slice(0, -1));
    expect(diskFaults(group(whole), hashesOnDisk(dir))).toEqual(fault);
  } finally {
    await rm(dir, { recursive: true });
  }
});

test("the checks find a row that a trainer's form lacks", () => {
  const about = { format: "slime", notes: [] };
  const records = whole.map(({ rolloutId, tokenIds, reward }) => ({
    session_id: rolloutId,
    tokens: tokenIds,
    reward,
  }));
  expect(formFaults({ ...about, records }, group(whole))).toEqual([]);
  expect(formFaults({ ...about, records: records.slice(1) }, group(whole))).toEqual([
    "lamps/train/4 for slime: 2 rows of 3",
    "lamps/train/4 for slime: row 0 of slime is not that of lamps/train/4#0",
    "lamps/train/4 for slime: row 1 of slime is not that of lamps/train/4#0",
  ]);
});

test("a service that is killed delivers no attempt with several rows in part", async () => {
  const command = [program, "2", "1", "2", "800"];
  // A failure has the output too.
  const { stdout } = await promisify(execFile)(process.execPath, command).catch(
    (error: { readonly stdout: string }) => error,
  );
  expect(stdout).not.toContain("What is left");
  const sums = JSON.parse(stdout.trim().split("\n").at(-1)!) as {
    readonly attempts: Readonly<Record<string, number>>;
  };
  expect(sums).toMatchObject({ kills: 2, faults: [] });
  const { 1: _one, ...several } = sums.attempts;
  expect(Object.keys(several)).not.toEqual([]);
});

import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { ColumnPart, ColumnSpecs } from "../../columns/index.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { diskFiles } from "../../run/disk/files.ts";
import { writeAtomically } from "../../run/disk/write-atomically.ts";
import { exportGroup } from "../export-group.ts";
import { exportRun } from "../export-run.ts";
import { tableContent, writeShards } from "../export-table.ts";
import type { ExportTarget } from "../exporters.ts";
import { readRunGroups } from "../read-run-groups.ts";
import { writeColumnRun } from "./column-run.fixture.ts";

const specs: ColumnSpecs = { routedExperts: { layerCount: 3, perToken: 2, expertCount: 8 } };

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-refused-"));
  await writeColumnRun(path.join(scratch, "routes"), specs);
  await writeColumnRun(path.join(scratch, "sets"), { keptTokens: { maxCount: 4 } });
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function exported(dir: string, to: ExportTarget) {
  const file = path.join(scratch, `${to}.rows`);
  const { content, summary } = await exportRun(dir, to, { file, policyVersion: 0 });
  await writeAtomically(file, content);
  return summary();
}

/** Returns a copy of the run with routes in which a row's parts are changed. */
async function damaged(
  change: (parts: readonly ColumnPart[]) => readonly ColumnPart[] | undefined,
): Promise<string> {
  const dir = await mkdtemp(path.join(scratch, "damaged-"));
  await cp(path.join(scratch, "routes"), dir, { recursive: true });
  const file = path.join(dir, "samples.jsonl");
  const [first, ...others] = (await readFile(file, "utf8")).trim().split("\n");
  const { columns, ...row } = JSON.parse(first!) as Sample;
  const parts = change(columns!.routedExperts!);
  const line = JSON.stringify({ ...row, ...(parts && { columns: { routedExperts: parts } }) });
  await writeFile(file, `${[line, ...others].join("\n")}\n`);
  return dir;
}

describe("a column that a trainer would miss", () => {
  test("kept tokens are refused by trainers without sets, because logprobs are over the sets", async () => {
    for (const to of ["miles", "verl", "trl", "prime-rl", "nemo-rl", "art", "areal"] as const) {
      await expect(exported(path.join(scratch, "sets"), to)).rejects.toThrow(
        `Cannot export this run to ${to}: it has keptTokens, and ${to} has no field for the sets, and the run's logprobs ` +
          "are those over the sets; use a trainer that takes them (slime, skyrl, verifiers), or play without them",
      );
    }
  });

  test("routes are left out for trainers without a field, and counted", async () => {
    for (const to of ["trl", "openrlhf", "areal", "tinker"] as const) {
      expect((await exported(path.join(scratch, "routes"), to)).columns).toEqual({
        rowCount: 0,
        mixedRowCount: 0,
        leftOut: ["routedExperts"],
      });
    }
    expect((await readdir(scratch)).filter((name) => name.endsWith(".arrays"))).toEqual([]);
  });

  test("a group of a live run has no columns: trainers that take them are refused", async () => {
    const run = await readRunGroups(path.join(scratch, "routes"));
    for await (const members of run.groups()) {
      expect(() => exportGroup("slime", members)).toThrow(
        "Cannot hand over lamps/train/0#0 in slime's form: it has routedExperts, and this way has no side columns",
      );
      expect(exportGroup("trl", members).records).toHaveLength(2);
      break;
    }
  });

  test("tables of rows have no place for columns", async () => {
    const dir = path.join(scratch, "routes");
    const message = `Cannot export ${dir} as parquet: it has the side columns routedExperts`;
    await expect(tableContent(dir, "parquet").next()).rejects.toThrow(message);
    await expect(writeShards(dir, path.join(scratch, "shards"))).rejects.toThrow("as safetensors");
  });

  test("forms with a binary file need a name", async () => {
    await expect(exportRun(path.join(scratch, "routes"), "slime")).rejects.toThrow(
      "Cannot export this run to slime on standard output: it has side columns",
    );
  });
});

const missing = "the row has no parts of it, and its run has the column";

describe("a damaged column is refused, and leaves no file", () => {
  const cases = {
    "the row has none": [() => undefined, missing],
    "the row has no list": [() => ({}) as readonly ColumnPart[], missing],
    "the row has something else in the list": [
      () => [null] as unknown as readonly ColumnPart[],
      missing,
    ],
    "a part begins late": [
      ([first, second, ...others]: readonly ColumnPart[]) => [
        first!,
        { ...second!, from: second!.from + 1 },
        ...others,
      ],
      "a part begins at token 7, not at 6",
    ],
    "a part lost a row": [
      ([first, ...others]: readonly ColumnPart[]) => [{ ...first!, rows: 5 }, ...others],
      "a part of 5 rows has 36 bytes, not 30",
    ],
    "the last part is missing": [
      (parts: readonly ColumnPart[]) => parts.slice(0, -1),
      "it has 10 rows for 16 ids",
    ],
    "the bytes are missing": [
      ([first, ...others]: readonly ColumnPart[]) => [
        { ...first!, hash: "0".repeat(32) },
        ...others,
      ],
      "Cannot read the column part 00000000000000000000000000000000 from",
    ],
  } as const;
  for (const [name, [change, message]] of Object.entries(cases)) {
    test(name, async () => {
      const dir = await damaged(change);
      await expect(exported(dir, "skyrl")).rejects.toThrow(message);
      const left = (await readdir(scratch)).filter((file) => file.startsWith("skyrl"));
      expect(left).toEqual([]);
    });
  }

  test("bytes were changed", async () => {
    for (const [name, column, to] of [
      ["routes", "routedExperts", "slime"],
      ["routes", "routedExperts", "nemo-rl"],
      ["sets", "keptTokens", "slime"],
    ] as const) {
      const dir = await mkdtemp(path.join(scratch, "changed-"));
      await cp(path.join(scratch, name), dir, { recursive: true });
      const file = path.join(dir, "columns/0000.bin");
      const bytes = await readFile(file);
      bytes[0]! ^= 1;
      await writeFile(file, bytes);
      await expect(exported(dir, to)).rejects.toThrow(
        new RegExp(
          `Cannot export ${column} of lamps/train/0#0, row 0: the bytes of the part \\w+ were changed`,
        ),
      );
    }
  });
});

test("the last byte of each part decides, also if the export leaves out the part's end", async () => {
  const dir = await mkdtemp(path.join(scratch, "last-bytes-"));
  await cp(path.join(scratch, "routes"), dir, { recursive: true });
  const text = await readFile(path.join(dir, "samples.jsonl"), "utf8");
  const rows = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
  // Groups with an aborted attempt are left out. Rows end with their last trained token, of which no routes are known.
  const used = new Set(
    rows
      .filter(({ rolloutId }) => /^lamps\/train\/[0-4]#/.test(rolloutId))
      .flatMap(({ columns, lossMask }) =>
        columns!.routedExperts!.filter(({ from }) => from < lossMask.lastIndexOf(1)),
      )
      .map(({ hash }) => hash),
  );
  const index = (await readFile(path.join(dir, "columns/0000.jsonl"), "utf8")).trim().split("\n");
  const places = index
    .map((line) => JSON.parse(line) as { readonly hash: string; at: number; size: number })
    .filter(({ hash }) => used.has(hash));
  expect(places.length).toBeGreaterThan(20);
  const targets = ["slime", "miles", "verl", "skyrl", "prime-rl", "verifiers", "art"] as const;
  const file = path.join(dir, "columns/0000.bin");
  const bytes = await readFile(file);
  for (const [number, { hash, at, size }] of places.entries()) {
    const changed = Buffer.from(bytes);
    changed[at + size - 1]! ^= 1;
    await writeFile(file, changed);
    const to = targets[number % targets.length]!;
    await expect(exported(dir, to)).rejects.toThrow(`the bytes of the part ${hash} were changed`);
  }
});

test("a kill between the names of arrays and rows leaves no rows with the arrays of another export", async () => {
  const dir = await mkdtemp(path.join(scratch, "killed-"));
  const file = path.join(dir, "rows");
  const write = async (to: ExportTarget) =>
    await writeAtomically(
      file,
      (await exportRun(path.join(scratch, "routes"), to, { file })).content,
    );
  await write("slime");
  const names = async () =>
    (await readdir(dir)).filter((name) => !name.endsWith(".next")).toSorted();
  expect(await names()).toEqual(["rows", "rows.arrays"]);
  const before = await readFile(`${file}.arrays`);
  const realRename = diskFiles.rename.bind(diskFiles);
  const rename = vi.spyOn(diskFiles, "rename");
  const kill = async (): Promise<never> => await Promise.reject(new Error("killed"));
  rename.mockImplementationOnce(kill);
  await expect(write("miles")).rejects.toThrow("killed");
  // The earlier arrays without their rows: nothing reads them.
  expect([await names(), await readFile(`${file}.arrays`)]).toEqual([["rows.arrays"], before]);
  rename.mockImplementationOnce(async (from, to) => await realRename(from, to));
  rename.mockImplementationOnce(kill);
  await expect(write("miles")).rejects.toThrow("killed");
  expect(await names()).toEqual(["rows.arrays"]);
  expect(await readFile(`${file}.arrays`)).not.toEqual(before);
  rename.mockRestore();
  await write("miles");
  expect(await names()).toEqual(["rows", "rows.arrays"]);
});

test("arrays of an earlier export to the same file are removed", async () => {
  const dir = await mkdtemp(path.join(scratch, "again-"));
  const file = path.join(dir, "rows");
  for (const [to, left] of [
    ["slime", ["rows", "rows.arrays"]],
    ["tinker", ["rows"]],
  ] as const) {
    await writeAtomically(
      file,
      (await exportRun(path.join(scratch, "routes"), to, { file })).content,
    );
    expect((await readdir(dir)).toSorted()).toEqual(left);
  }
});

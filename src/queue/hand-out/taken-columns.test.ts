import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  createColumnPart,
  hashColumnBytes,
  withoutBytes,
  type ColumnPart,
} from "../../columns/column-part.ts";
import { diskFiles } from "../../run/disk/files.ts";
import { openColumnsIn } from "../../run/columns/column-folder.ts";
import { ColumnWriter } from "../../run/columns/column-writer.ts";
import { TakenColumns } from "./taken-columns.ts";

let scratch = "";
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-taken-"));
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
});

/** A part of ten bytes. */
function partOf(value: number): ColumnPart {
  const bytes = new Uint8Array(10).fill(value);
  return createColumnPart({ from: 0, rows: 1, policyVersion: "3", bytes });
}

const columnsOf = (...parts: readonly ColumnPart[]) => ({ keptTokens: parts });
const bare = (...parts: readonly ColumnPart[]) => columnsOf(...parts.map(withoutBytes));

async function openWriter(folder: string, name: string): Promise<ColumnWriter> {
  const dir = path.join(scratch, folder);
  return await ColumnWriter.open(dir, { files: diskFiles, name, fileBytes: 20 });
}

/** Writes parts one after the other: two fill a file. */
async function write(writer: ColumnWriter, ...parts: readonly ColumnPart[]): Promise<void> {
  for (const part of parts) {
    await writer.keep(columnsOf(part));
    await writer.flush();
  }
}

function open(folder?: string): { readonly taken: TakenColumns; readonly waits: number[] } {
  const waits: number[] = [];
  const clock = { sleep: async (ms: number) => void waits.push(ms) };
  const dir = folder === undefined ? undefined : path.join(scratch, folder);
  return { taken: new TakenColumns(dir, clock), waits };
}

const binsIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(path.join(scratch, folder))).filter((name) => name.endsWith(".bin")).toSorted();

test("parts are copied, and a full file is removed when all of its parts have landed", async () => {
  await using worker = await openWriter("shared", "worker-a");
  await using run = await openWriter("run", "start-0");
  const [one, two, three, four] = [1, 2, 3, 4].map(partOf) as [
    ColumnPart,
    ColumnPart,
    ColumnPart,
    ColumnPart,
  ];
  await write(worker, one, two, three);
  const { taken } = open("shared");
  await using _taken = taken;
  expect(await taken.take(bare(one, three), run)).toBeUndefined();
  await taken.landed(bare(one, three));
  // The first file has a part that no run has, and the second may still grow.
  expect(await binsIn("shared")).toEqual(["worker-a-0000.bin", "worker-a-0001.bin"]);
  expect(await taken.take(bare(two), run)).toBeUndefined();
  await taken.landed(bare(two));
  expect(await binsIn("shared")).toEqual(["worker-a-0001.bin"]);
  // Another attempt has the same bytes as an earlier one.
  await write(worker, one, four);
  expect(await taken.take(bare(one, four), run)).toBeUndefined();
  await run.flush();
  await using source = openColumnsIn(path.join(scratch, "run"));
  for (const part of [one, two, three, four]) {
    expect([...(await source.read(part))]).toEqual([...part.bytes!]);
  }
});

test("a part of which the shared file is gone counts if the run's folder has it", async () => {
  await using worker = await openWriter("shared", "worker-a");
  await using run = await openWriter("run", "start-0");
  await write(worker, partOf(1));
  await write(run, partOf(1));
  await rm(path.join(scratch, "shared", "worker-a-0000.bin"));
  const { taken, waits } = open("shared");
  await using _taken = taken;
  expect(await taken.take(bare(partOf(1)), run)).toBeUndefined();
  expect(waits).toEqual([]);
});

test("a missing or damaged part is a fault after several looks", async () => {
  await using worker = await openWriter("shared", "worker-a");
  await using run = await openWriter("run", "start-0");
  const { hash } = partOf(1);
  await write(worker, partOf(1));
  const file = path.join(scratch, "shared", "worker-a-0000.bin");
  const bytes = await readFile(file);
  bytes[0] = 9;
  await writeFile(file, bytes);
  const { taken, waits } = open("shared");
  await using _taken = taken;
  expect(await taken.take(bare(partOf(1)), run)).toBe(
    `its column keptTokens is not complete: the bytes of the part ${hash} have the hash ` +
      hashColumnBytes(bytes),
  );
  expect(waits).toHaveLength(5);
  const missing = partOf(2);
  const fault = await taken.take(bare(missing), run);
  expect(fault).toContain(`Cannot read the column part ${missing.hash}`);
});

test("workers on this machine write into the run's folder, so nothing is copied", async () => {
  await using worker = await openWriter("run", "worker-a");
  await using run = await openWriter("run", "start-0");
  await write(worker, partOf(1));
  const { taken } = open();
  await using _taken = taken;
  expect(await taken.take(bare(partOf(1)), run)).toBeUndefined();
  await taken.landed(bare(partOf(1)));
  expect(await binsIn("run")).toEqual(["worker-a-0000.bin"]);
  const { hash } = partOf(2);
  expect(await taken.take(bare(partOf(2)), run)).toBe(
    `its column keptTokens is not complete: no file in the run's folder has the part ${hash}`,
  );
});

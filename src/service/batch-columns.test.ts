import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createColumnPart } from "../columns/column-part.ts";
import { ColumnWriter } from "../run/columns/column-writer.ts";
import { diskFiles } from "../run/disk/files.ts";
import { BatchColumns } from "./batch-columns.ts";
import type { GroupEntry } from "./service-journal.ts";

let scratch = "";
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-batch-columns-"));
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
});

const entryOf = (groupIndex: number): GroupEntry => ({
  type: "group",
  cursor: groupIndex + 1,
  batch: "b1",
  groupIndex,
});

/** The columns of a batch. Each part that is written fills a file. */
async function open(): Promise<{
  readonly columns: BatchColumns;
  readonly writer: ColumnWriter;
  readonly acknowledged: Set<number>;
  readonly write: () => Promise<void>;
  readonly files: () => Promise<readonly string[]>;
}> {
  const writer = await ColumnWriter.open(scratch, {
    files: diskFiles,
    name: "start-0",
    fileBytes: 1,
  });
  const acknowledged = new Set<number>();
  let count = 0;
  return {
    columns: new BatchColumns(
      { columns: writer },
      { isForgotten: ({ groupIndex }) => acknowledged.has(groupIndex) },
    ),
    writer,
    acknowledged,
    write: async () => {
      const bytes = new Uint8Array(3).fill(count++);
      const part = createColumnPart({ from: 0, rows: 1, policyVersion: "", bytes });
      await writer.keep({ keptTokens: [part] });
      await writer.flush();
    },
    files: async () => (await readdir(scratch)).filter((name) => name.endsWith(".bin")).toSorted(),
  };
}

test("a full file is freed when all groups that were played while it was open are acknowledged", async () => {
  const { columns, writer, acknowledged, write, files } = await open();
  await using _writer = writer;
  columns.started(0);
  await write();
  columns.started(1);
  await write();
  columns.delivered(0, entryOf(0));
  await write();
  columns.started(2);
  await write();
  expect(await columns.free()).toEqual([]);
  // Group 0 may have parts in the first two files, group 1 in all.
  acknowledged.add(0);
  expect(await columns.free()).toEqual([]);
  columns.delivered(1, entryOf(1));
  acknowledged.add(1);
  // Group 2 started while the third file was open, and the fourth is not full.
  expect(await columns.free()).toEqual(["start-0-0000.bin", "start-0-0001.bin"]);
  expect(await files()).toEqual(["start-0-0002.bin", "start-0-0003.bin"]);
  columns.delivered(2, entryOf(2));
  acknowledged.add(2);
  expect(await columns.free()).toEqual(["start-0-0002.bin"]);
  expect(await columns.free()).toEqual([]);
});

test("a group that a taker has keeps no file", async () => {
  const { columns, writer, write } = await open();
  await using _writer = writer;
  columns.started(0);
  await write();
  await write();
  expect(await columns.free()).toEqual([]);
  columns.delivered(0, "taken");
  expect(await columns.free()).toEqual(["start-0-0000.bin"]);
});

test("a group that an earlier start finished keeps no file of this start", async () => {
  const { columns, writer, write } = await open();
  await using _writer = writer;
  await write();
  columns.delivered(0, entryOf(0));
  await write();
  expect(await columns.free()).toEqual(["start-0-0000.bin"]);
});

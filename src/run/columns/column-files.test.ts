import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createColumnPart, type ColumnPart } from "../../columns/column-part.ts";
import { diskFiles } from "../disk/files.ts";
import { faultyFiles } from "../faulty-files.fixture.ts";
import { openColumnsIn } from "./column-folder.ts";
import { ColumnIndex } from "./column-index.ts";
import { ColumnWriter } from "./column-writer.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-column-files-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** A part of ten bytes. */
function partOf(value: number): ColumnPart {
  const bytes = new Uint8Array(10).fill(value);
  return createColumnPart({ from: 0, rows: 1, policyVersion: "3", bytes });
}

async function write(
  name: string,
  parts: readonly ColumnPart[],
  fileBytes = 2 ** 30,
): Promise<void> {
  await using writer = await ColumnWriter.open(dir, { files: diskFiles, name, fileBytes });
  for (const part of parts) {
    await writer.keepParts([part]);
    await writer.flush();
  }
}

test("waits for the parts so far, and not for those that arrive meanwhile", async () => {
  await using writer = await ColumnWriter.open(dir, { files: diskFiles, name: "start-0" });
  await writer.keepParts([partOf(0)]);
  const flushed = { is: false };
  const flushing = writer.flush().then(() => (flushed.is = true));
  // A part arrives in each round of the event loop, as in a run with many episodes.
  let rounds = 0;
  for (; rounds < 2_000 && !flushed.is; rounds++) {
    await writer.keepParts([partOf(1 + (rounds % 200))]);
    await setImmediate();
  }
  expect(rounds).toBeLessThan(2_000);
  await flushing;
});

test("a failed read of one index loses no line of another", async () => {
  await write("start-0", [partOf(0)]);
  await write("start-1", [partOf(1)]);
  let isFaulty = true;
  const files = faultyFiles(({ operation, path: file }) =>
    isFaulty && operation === "open" && file.endsWith("start-1.jsonl")
      ? { type: "fail", code: "EMFILE" }
      : undefined,
  );
  const index = new ColumnIndex(dir, files);
  await expect(index.refresh()).rejects.toThrow("Cannot read");
  isFaulty = false;
  await index.refresh();
  expect([partOf(0), partOf(1)].map(({ hash }) => index.find(hash)?.file)).toEqual([
    "start-0-0000.bin",
    "start-1-0000.bin",
  ]);
});

test("parts of many files can be read at once", async () => {
  const parts = Array.from({ length: 200 }, (_, value) => partOf(value));
  await write("start-0", parts, 10);
  await using source = openColumnsIn(dir);
  const read = await Promise.all(parts.map(async (part) => await source.read(part)));
  expect(read.map(([value]) => value)).toEqual(parts.map(({ bytes }) => bytes![0]));
});

test("lines that name no place are passed over", async () => {
  await write("start-0", [partOf(0)]);
  const lines = [
    "{}",
    "null",
    "no JSON",
    JSON.stringify({ hash: partOf(1).hash, file: "../start-0-0000.bin", at: 0, size: 10 }),
    JSON.stringify({ hash: partOf(1).hash, file: "start-0-0000.bin", at: -5, size: 10 }),
    JSON.stringify({ hash: partOf(1).hash, file: "start-0-0000.bin", at: 0, size: -10 }),
  ];
  await writeFile(path.join(dir, "start-1.jsonl"), `${lines.join("\n")}\n{"hash":`);
  await using source = openColumnsIn(dir);
  expect(await source.placeOf(partOf(1).hash)).toBeUndefined();
  expect([...(await source.read(partOf(0)))]).toEqual([...partOf(0).bytes!]);
});

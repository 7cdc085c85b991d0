import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { faultyFiles } from "../faulty-files.fixture.ts";
import { diskFiles, readBytes } from "./files.ts";
import { keepLines } from "./keep-lines.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-keep-"));
  file = path.join(dir, "rows.jsonl");
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const one = { start: 0, end: 1 };
const two = { start: 2, end: 3 };
const three = { start: 4, end: 5 };

test.each([
  ["all lines stay", "1\n2\n3\n", [one, two, three], "1\n2\n3\n", "same"],
  [
    "all lines stay, the last of which lacks its line feed",
    "1\n2\n3",
    [one, two, three],
    "1\n2\n3",
    "same",
  ],
  ["what follows the last line feed goes", "1\n2\n[3", [one, two], "1\n2\n", "same"],
  ["a line without a line feed is all there is", "[1", [], "", "same"],
  ["the last line goes", "1\n2\n3\n", [one, two], "1\n2\n", "same"],
  ["the last line goes with a torn one", "1\n2\n[3", [one], "1\n", "same"],
  ["a line in the middle goes", "1\n2\n3\n", [one, three], "1\n3\n", "another"],
  ["the lines change places", "1\n2\n", [two, one], "2\n1\n", "another"],
  ["all lines go", "1\n2\n3\n", [], "", "same"],
])("keepLines(): %s", async (_what, before, ranges, after, expected) => {
  await writeFile(file, before);
  const reader = await diskFiles.open(file, "read");
  try {
    await keepLines(file, { files: diskFiles, ranges, size: before.length });
    expect(await readFile(file, "utf8")).toBe(after);
    const [there, own] = [await diskFiles.facts(file), await reader.facts()];
    expect(there?.identity === own.identity ? "same" : "another").toBe(expected);
    // An open reader keeps the old file.
    const read = await readBytes(reader, { start: 0, end: before.length });
    expect(read.toString()).toBe(expected === "same" ? after : before);
  } finally {
    await reader.close();
  }
});

test("keepLines() cuts a file on a full disk, and keeps one that would have to be replaced", async () => {
  const files = faultyFiles(({ operation }) =>
    operation === "write" ? { type: "fail", code: "ENOSPC" } : undefined,
  );
  await writeFile(file, "1\n2\n3\n");
  await keepLines(file, { files, ranges: [one, two], size: 6 });
  expect(await readFile(file, "utf8")).toBe("1\n2\n");
  await expect(keepLines(file, { files, ranges: [two], size: 4 })).rejects.toThrow("ENOSPC");
  expect(await readFile(file, "utf8")).toBe("1\n2\n");
});

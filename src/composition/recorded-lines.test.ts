import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { indexRecordedLines } from "./recorded-lines.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-recorded-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const rolloutIds = ["long/0#0", "a#0", "b#0", "c#0", "a#1", "b#1", "c#1", "long/0#1"];

/** The written lines of one file, in the order of writing. */
function linesOf(rolloutId: string) {
  const place = { rolloutId, attempt: 1 };
  return {
    recording: [
      { recording: 1, type: "begin", ...place },
      { recording: 1, type: "inputs", ...place, part: 0 },
    ],
    samples: [0, 1].map((segment) => ({ format: 1, rolloutId, segment })),
    episodes: [{ format: 1, rolloutId }],
  };
}

const textOf = (rows: readonly object[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** The writes of a run in order. At the end of the run the rows of samples are sorted again. */
function writesOfRun(end: "finished" | "interrupted"): (() => Promise<void>)[] {
  const append = async (name: string, rows: readonly object[]) =>
    await appendFile(path.join(dir, `${name}.jsonl`), textOf(rows));
  const sorted = rolloutIds.toReversed().flatMap((rolloutId) => linesOf(rolloutId).samples);
  const sort = async () => {
    await writeFile(path.join(dir, "next"), textOf(sorted));
    await rename(path.join(dir, "next"), path.join(dir, "samples.jsonl"));
  };
  return [
    ...rolloutIds.flatMap((rolloutId) =>
      Object.entries(linesOf(rolloutId)).flatMap(([name, rows]) =>
        rows.map((row) => async () => await append(name, [row])),
      ),
    ),
    ...(end === "finished" ? [sort] : []),
  ];
}

/** Files into which more is written whenever one is opened or asked about. */
function filesBeside(writes: (() => Promise<void>)[], writesALook: number): Files {
  let written = Promise.resolve();
  const goOn = async () => {
    // In order, even if several files are read at once.
    written = written.then(async () => {
      for (const write of writes.splice(0, writesALook)) await write();
    });
    await written;
  };
  return {
    ...diskFiles,
    async open(name, mode) {
      await goOn();
      return await diskFiles.open(name, mode);
    },
    async facts(name) {
      await goOn();
      return await diskFiles.facts(name);
    },
  };
}

test.each([
  ["finished", 1],
  ["finished", 4],
  ["interrupted", 1],
  ["interrupted", 4],
] as const)(
  "an episode with a written line is complete: %s, %j writes a look",
  async (end, writesALook) => {
    const count = writesOfRun(end).length;
    let wholeCount = 0;
    for (let writesBefore = 0; writesBefore <= count; writesBefore += 1) {
      const writes = writesOfRun(end);
      for (const write of writes.splice(0, writesBefore)) await write();
      const index = await indexRecordedLines(dir, filesBeside(writes, writesALook));
      for (const rolloutId of index.rolloutIds) {
        const read = await index.read(rolloutId);
        const parse = (lines: readonly Buffer[]) =>
          lines.map((line) => JSON.parse(line.toString("utf8")) as object);
        const found = {
          recording: parse(read.recording),
          samples: parse(read.samples),
          episodes: parse(read.episodes),
        };
        if (found.episodes.length === 0) continue;
        wholeCount += 1;
        expect(found, `${writesBefore} before`).toEqual(linesOf(rolloutId));
      }
      for (const write of writes) await write();
      for (const name of ["recording", "samples", "episodes"])
        await rm(path.join(dir, `${name}.jsonl`));
    }
    expect(wholeCount).toBeGreaterThan(2 * count);
  },
);

test.each(["recording", "samples", "episodes"] as const)(
  "removed and rewritten lines of %s.jsonl are found again",
  async (name) => {
    for (const write of writesOfRun("interrupted")) await write();
    const index = await indexRecordedLines(dir);
    const [first, second, third] = ["b#1", "c#1", "a#2"] as const;
    const file = path.join(dir, `${name}.jsonl`);
    const rowsOf = (ids: readonly string[]): readonly object[] =>
      ids.flatMap((rolloutId): readonly object[] => linesOf(rolloutId)[name]);
    const kept = rolloutIds.slice(0, rolloutIds.indexOf(first));
    await truncate(file, textOf(rowsOf(kept)).length);
    // The file is longer then than it was.
    await appendFile(file, textOf(rowsOf([third, second, first, "long/0#1", "long/0#2"])));
    const found = await index.read(first);
    expect(found[name].map((line) => JSON.parse(line.toString("utf8")) as object)).toEqual(
      linesOf(first)[name],
    );
  },
);

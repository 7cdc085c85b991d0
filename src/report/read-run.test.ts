import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { Sample } from "../trajectory/sample.ts";
import { readFinishedRows } from "./finished-rows.ts";
import { openStoredRun, type DamagedLine, type StoredRun } from "./read-run.ts";

let dir = "";
let file = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-read-run-"));
  file = path.join(dir, "episodes.jsonl");
  const manifest = { format: 1, turnwright: "0", configuration: {}, found: {} };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

/** An episode that names its rows. */
const named = (rolloutId: string, sampleHashes: readonly string[]): string =>
  JSON.stringify({ rolloutId, taskId: "t", sampleHashes });

async function writeEpisodes(...lines: readonly string[]): Promise<void> {
  await writeFile(file, lines.map((line) => `${line}\n`).join(""));
}

const episode = (rolloutId: string): string => JSON.stringify({ rolloutId, taskId: "t" });

async function idsOf(run: StoredRun): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { rolloutId } of run.rows()) ids.push(rolloutId);
  return ids;
}

describe("a run with damaged episodes", () => {
  const lines = [episode("a"), '{"rolloutId":"b","ta', episode("c"), '{"rolloutId":"d"}', "null"];

  test("is read without the damaged lines, and each is reported once", async () => {
    await writeFile(file, [...lines, episode("e"), '{"rolloutId":"f'].join("\n"));
    const damaged: DamagedLine[] = [];
    const run = await openStoredRun(dir, { onDamaged: (line) => damaged.push(line) });
    expect(await idsOf(run)).toEqual(["a", "c", "e"]);
    expect(await idsOf(run)).toEqual(["a", "c", "e"]);
    expect(damaged).toEqual([
      { file, line: 2, problem: "it is not JSON, expected an episode" },
      { file, line: 4, problem: "it is not an episode, expected one" },
      { file, line: 5, problem: "it is not an episode, expected one" },
    ]);
  });

  test("is refused without a callback for damaged lines", async () => {
    await writeFile(file, lines.join("\n"));
    await expect(idsOf(await openStoredRun(dir))).rejects.toThrow(
      `Cannot read ${file}, line 2: it is not JSON, expected an episode`,
    );
  });

  test("is sound with a last line that is torn", async () => {
    await writeFile(file, `${episode("a")}\n${episode("b").slice(0, 9)}`);
    expect(await idsOf(await openStoredRun(dir))).toEqual(["a"]);
  });
});

test("rows of samples are those of their rollout however another program spelled them", async () => {
  const rows = [
    '{"format":1,"rolloutId":"a","segment":0}',
    '{"format": 1, "rolloutId": "a", "segment": 1}',
    '{"segment":2,"turns":[{"rolloutId":"b"}],"rolloutId":"\\u0061","format":1}',
    '{"format": 1, "rolloutId": "b", "segment": 0}',
    '["rolloutId","a"]',
    "",
  ];
  const hashesOf = (...places: number[]): readonly string[] =>
    places.map((place) => hashRow(JSON.parse(rows[place]!)));
  await writeEpisodes(named("a", hashesOf(0, 1, 2)), named("b", hashesOf(3)));
  await writeFile(path.join(dir, "samples.jsonl"), rows.join("\n"));
  const run = await openStoredRun(dir);
  const segmentsOf = async (rolloutId: string): Promise<readonly number[]> => {
    const segments: number[] = [];
    for await (const { segment } of run.samplesOf(rolloutId)) segments.push(segment);
    return segments;
  };
  expect(await segmentsOf("a")).toEqual([0, 1, 2]);
  expect(await segmentsOf("b")).toEqual([0]);
  expect(await segmentsOf("c")).toEqual([]);
  await rm(path.join(dir, "samples.jsonl"));
  expect(await segmentsOf("a")).toEqual([]);
});

describe("rows of samples", () => {
  const rowsFile = (): string => path.join(dir, "samples.jsonl");
  const row = (rolloutId: string, logprob: number): string =>
    JSON.stringify({ rolloutId, segment: 0, logprobs: [logprob] });
  const hashOf = (line: string): string => hashRow(JSON.parse(line));

  async function logprobsOf(rows: AsyncIterable<Sample>): Promise<readonly unknown[]> {
    const found: unknown[] = [];
    for await (const { rolloutId, logprobs } of rows) found.push([rolloutId, logprobs[0]]);
    return found;
  }

  test("are those that finished episodes name, each once", async () => {
    const lines = [row("a", -3), row("b", -1), row("a", -1), row("a", -1), "null", row("c", -1)];
    await writeEpisodes(named("a", [hashOf(lines[2]!)]), named("c", [hashOf(lines[5]!)]));
    await writeFile(rowsFile(), lines.join("\n"));
    const run = await openStoredRun(dir);
    expect(await logprobsOf(run.samples())).toEqual([
      ["a", -1],
      ["c", -1],
    ]);
    expect(await logprobsOf(run.samplesOf("a"))).toEqual([["a", -1]]);
    expect(await logprobsOf(run.samplesOf("b"))).toEqual([]);
  });

  test("are refused at their end if another program changed some", async () => {
    const [sound, changed] = [row("a", -1), row("b", -1)];
    await writeEpisodes(named("a", [hashOf(sound)]), named("b", [hashOf(changed)]));
    const edited = changed.replace("}", ',"advantage":1}');
    await writeFile(rowsFile(), [edited, sound].join("\n"));
    const run = await openStoredRun(dir);
    const refusal = new UsageError(
      `Cannot read all of ${rowsFile()}: 1 rows that finished episodes name are not in it as they were written, ` +
        "as if another program had changed it; turnwright verify says which",
    );
    await expect(logprobsOf(run.samples())).rejects.toThrow(refusal);
    await expect(logprobsOf(run.samplesOf("b"))).rejects.toThrow(refusal);
    expect(await logprobsOf(run.samplesOf("a"))).toEqual([["a", -1]]);
  });

  test("are not missed if their failed episode is removed in the meantime, to be played again", async () => {
    const lines = [row("a", -1), row("b", -1)];
    await writeFile(rowsFile(), lines[0]!);
    const [sound, failed] = ["a", "b"].map((rolloutId, place) => ({
      rolloutId,
      sampleHashes: [hashOf(lines[place]!)],
    }));
    const found = [[sound!, failed!], [sound!]];
    const episodes = async function* () {
      yield* found.shift()!;
    };
    expect(await logprobsOf(readFinishedRows(rowsFile(), episodes))).toEqual([["a", -1]]);
  });

  test("are read without a torn last one, and refused if another one is torn", async () => {
    const [sound, torn] = [row("a", -1), row("a", -2).slice(0, -4)];
    await writeEpisodes(named("a", [hashOf(sound)]));
    await writeFile(rowsFile(), [sound, torn].join("\n"));
    const run = await openStoredRun(dir);
    expect(await logprobsOf(run.samples())).toEqual([["a", -1]]);
    expect(await logprobsOf(run.samplesOf("a"))).toEqual([["a", -1]]);
    await writeFile(rowsFile(), [torn, sound].join("\n"));
    const refusal = new UsageError(
      `Cannot read ${rowsFile()}, line 1: it is not JSON, expected a training row`,
    );
    await expect(logprobsOf(run.samples())).rejects.toThrow(refusal);
    await expect(logprobsOf(run.samplesOf("a"))).rejects.toThrow(refusal);
  });
});

test("a file of a run in the place of its folder is refused with the folder's name", async () => {
  await expect(openStoredRun(file)).rejects.toThrow(
    `Cannot read ${file} as a run: it is a file, expected a run's folder, such as ${dir}`,
  );
});

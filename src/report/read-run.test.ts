import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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

const episode = (rolloutId: string): string => JSON.stringify({ rolloutId, taskId: "t" });

async function idsOf(run: StoredRun): Promise<readonly string[]> {
  const ids: string[] = [];
  for await (const { rolloutId } of run.rows()) ids.push(rolloutId);
  return ids;
}

describe("a run with damaged episodes", () => {
  const lines = [episode("a"), '{"rolloutId":"b","ta', episode("c"), '{"rolloutId":"d"}', "null"];

  test("is read without them, and each is told of once", async () => {
    await writeFile(file, [...lines, episode("e"), '{"rolloutId":"f'].join("\n"));
    const damaged: DamagedLine[] = [];
    const run = await openStoredRun(dir, { onDamaged: (line) => damaged.push(line) });
    expect(await idsOf(run)).toEqual(["a", "c", "e"]);
    expect(await idsOf(run)).toEqual(["a", "c", "e"]);
    expect(damaged).toEqual([
      { file, line: 2, problem: "it is no JSON, expected an episode" },
      { file, line: 4, problem: "it is no episode, expected one" },
      { file, line: 5, problem: "it is no episode, expected one" },
    ]);
  });

  test("is refused where nobody is to be told", async () => {
    await writeFile(file, lines.join("\n"));
    await expect(idsOf(await openStoredRun(dir))).rejects.toThrow(
      `Cannot read ${file}, line 2: it is no JSON, expected an episode`,
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

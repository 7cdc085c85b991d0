import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { diskFiles } from "../run/disk/files.ts";
import { checkEvents } from "./check-records.ts";

const begun = { configuration: {}, runId: "a run", promptTime: "2026-11-23T10:05:00.000" };

test.each([
  [{}, []],
  [{ runId: "another" }, ['runId is "another", and the run was started with "a run"']],
  [{ runId: undefined }, ['runId is undefined, and the run was started with "a run"']],
  [
    { promptTime: "2026-11-24T10:05:00.000" },
    [
      'promptTime is "2026-11-24T10:05:00.000", and the run was started with "2026-11-23T10:05:00.000"',
    ],
  ],
])(
  "run.json with %j names another run than was started, or another day",
  async (changed, expected) => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-records-"));
    onTestFinished(async () => await rm(dir, { recursive: true }));
    const manifest = { ...begun, ...changed };
    const check = async (recorded: object) => {
      const event = { type: "run-started", atMs: 0, manifest: recorded };
      await writeFile(path.join(dir, "events.jsonl"), `${JSON.stringify(event)}\n`);
      const place = { files: diskFiles, dir };
      const { findings } = await checkEvents(place, new Map(), { manifest, summary: undefined });
      return findings.filter(({ rule }) => rule === "run").map(({ detail }) => detail);
    };
    expect(await check(begun)).toEqual(expected);
    // A program's own event need not name them.
    expect(await check({ configuration: {} })).toEqual([]);
  },
);

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { verifyRun } from "../../verify/verify-run.ts";
import { readRun } from "../../api/read-run.ts";
import { createRun } from "../create-run.ts";
import { readRunConfig } from "./run-config.ts";

const model = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-epochs-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const settings = {
  env: "storefront",
  user: "scripted",
  engine: "reference",
  threads: 1,
  sequences: 2,
  model,
  tasks: "0-1",
  "max-tokens-per-turn": 16,
  "max-turns": 1,
  "sampling-seed": 3,
} as const;

async function play(out: string, more: Readonly<Record<string, unknown>>) {
  await using run = await createRun(readRunConfig({ ...settings, out, ...more }));
  await using folder = await run.openFolder();
  const { end, progress } = await run.play(folder, { signal: new AbortController().signal });
  return { end, planned: progress.planned, finished: progress.finished };
}

describe("epochs over the tasks", () => {
  test("play the requested number of groups, extend the run later, and verify", async () => {
    const out = path.join(scratch, "endless");
    const epochs = { epochs: "endless", format: "slime" };
    const first = await play(out, { ...epochs, groups: 3 });
    expect(first).toEqual({ end: "finished", planned: 3, finished: 3 });
    const more = await play(out, { ...epochs, groups: 5 });
    expect(more).toEqual({ end: "finished", planned: 5, finished: 5 });
    // A bound lower than the existing number of groups has no effect.
    const fewer = await play(out, { ...epochs, groups: 2 });
    expect(fewer).toEqual({ end: "finished", planned: 5, finished: 5 });
    const rows = (await readFile(path.join(out, "episodes.jsonl"), "utf8")).trim().split("\n");
    const groups = rows.map((row) => (JSON.parse(row) as { groupId: string }).groupId).toSorted();
    expect(groups.filter((id) => id.includes("~2"))).toHaveLength(2);
    expect(groups.filter((id) => id.includes("~3"))).toHaveLength(1);
    const { found } = JSON.parse(await readFile(path.join(out, "run.json"), "utf8")) as {
      readonly found: { readonly plan: unknown };
    };
    expect(found.plan).toEqual({
      environment: "storefront",
      split: "train",
      seed: 0,
      sampleCount: 1,
      isOpen: true,
      passOver: [0, 1],
    });
    expect((await verifyRun(out)).violations).toEqual([]);
    const { tasks, episodes } = await (await readRun(out)).evaluation();
    expect(episodes).toMatchObject({ planned: 5, finished: 5 });
    expect(tasks).toHaveLength(2);

    const [row = "", ...others] = rows;
    const { groupId } = JSON.parse(row) as { readonly groupId: string };
    const moved = row.replace(`"groupId":"${groupId}"`, '"groupId":"another~9"');
    await writeFile(path.join(out, "episodes.jsonl"), [moved, ...others, ""].join("\n"));
    const { violations } = await verifyRun(out);
    expect(violations).toContainEqual({
      file: "episodes.jsonl",
      line: 1,
      rule: "plan",
      detail: expect.stringContaining(`groupId is "another~9", expected "${groupId}"`) as string,
    });
  });

  test("end by themselves if their number is given", async () => {
    const out = path.join(scratch, "two");
    expect(await play(out, { epochs: "2" })).toEqual({ end: "finished", planned: 4, finished: 4 });
    expect((await verifyRun(out)).violations).toEqual([]);
  });

  test.each([
    [{ epochs: "0" }, "Cannot use --epochs 0: expected a whole number of at least 1, or endless"],
    [{ epochs: "1e2" }, "Cannot use --epochs 1e2"],
    [{ groups: 3 }, "Cannot use --groups without --epochs"],
    [{ "branch-at": "1,x", samples: 2 }, "Cannot use --branch-at 1,x: expected turns from 0"],
    [{ "branch-at": "1", samples: 1 }, "Cannot use --branch-at with 1 attempt a task"],
    [
      { "branch-at": "1", samples: 2, record: "none" },
      'Cannot branch (branchAt, or --branch-at) where record is "none"',
    ],
  ])("are refused as %j", (more, message) => {
    expect(() => readRunConfig({ ...settings, ...more })).toThrow(message);
  });
});

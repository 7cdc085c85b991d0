import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeSoundRun } from "../audit/sound-run.fixture.ts";
import { verifyRun } from "../audit/verify-run.ts";
import { openStoredRun } from "./read-run.ts";
import { writeEvaluation } from "./write-evaluation.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-evaluation-"));
  await writeSoundRun(dir);
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const read = async (name: string): Promise<string> => await readFile(path.join(dir, name), "utf8");

const plan = {
  environment: "shop",
  split: "test",
  tasks: [0, 1, 2, 3].map((taskIndex) => ({ taskId: `shop/test/${taskIndex}`, taskIndex })),
  trialCount: 2,
};

test("an evaluation stands in files of its own, beside what the run says of itself", async () => {
  const [names, summary] = [await readdir(dir), await read("summary.json")];
  const evaluation = await writeEvaluation(await openStoredRun(dir), { plan });
  expect((await readdir(dir)).filter((name) => !names.includes(name)).toSorted()).toEqual([
    ...["evaluation.json", "report.md", "results.tau-bench.json"],
  ]);
  expect(JSON.parse(await read("evaluation.json"))).toEqual(JSON.parse(JSON.stringify(evaluation)));
  expect(await read("summary.json")).toEqual(summary);
  expect((await verifyRun(dir)).violations).toEqual([]);
});

test("what a run says of its end while it is evaluated stays, and what it takes back is gone", async () => {
  const file = path.join(dir, "summary.json");
  const summary = await read("summary.json");
  const stored = await openStoredRun(dir);
  /** Something happens to the run once, behind the first episode that is read of it. */
  const during = (happen: () => Promise<void>) => {
    let happened: Promise<void> | undefined;
    return {
      ...stored,
      async *rows() {
        for await (const row of stored.rows()) {
          yield row;
          await (happened ??= happen());
        }
      },
    };
  };
  await rm(file);
  const ends = during(async () => await writeFile(file, summary));
  await writeEvaluation(ends, { plan });
  expect(await read("summary.json")).toEqual(summary);
  const goesOn = during(async () => await rm(file));
  await writeEvaluation(goesOn, { plan });
  expect(await readdir(dir)).not.toContain("summary.json");
});

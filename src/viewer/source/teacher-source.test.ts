import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addTeacher, taughtLogprob, taughtTop } from "../../export/teacher/teacher-run.fixture.ts";
import { OpenColumns } from "../../run/columns/open-columns.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { makeEpisode, makeSample, viewedModel, writeViewedRun } from "../viewed-run.fixture.ts";
import { RowSource } from "./row-source.ts";
import { RunIndex } from "./run-index.ts";
import { TeacherSource } from "./teacher-source.ts";

const rolloutId = "shop/test/0#0";
const address = { rolloutId, row: 0 };
let scratch = "";
let sample: Sample;
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-viewed-teacher-"));
  const codec = await loadTokenCodec(viewedModel);
  sample = await makeSample(codec, rolloutId, [
    { text: "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n" },
    { text: "Good morning.<|im_end|>", version: "7" },
    { text: "\n<|im_start|>user\nBye.<|im_end|>\n" },
  ]);
  await codec.close?.();
});
afterAll(async () => await rm(scratch, { recursive: true }));

async function openRun(name: string): Promise<RunIndex> {
  const dir = path.join(scratch, name);
  await writeViewedRun(dir, [{ row: makeEpisode(rolloutId, [{}]), samples: [sample] }]);
  return await RunIndex.open(dir, { key: "run" });
}

test("reads each teacher's logprob and most probable ids of a token", async () => {
  const run = await openRun("taught");
  expect(run.facts).not.toHaveProperty("teachers");
  await addTeacher(run.dir, { name: "wide", topCount: 3 });
  await addTeacher(run.dir, { name: "large" });
  await run.refresh();
  expect(run.facts.teachers).toEqual(["large", "wide"]);
  await using columns = new OpenColumns();
  const source = new TeacherSource(new RowSource(), columns);
  const { tokenIds: ids, promptLength } = sample;
  expect(await source.token(run, address, promptLength - 1)).toEqual([]);
  expect(await source.token(run, { rolloutId: "other", row: 0 }, promptLength)).toEqual([]);
  for (let token = promptLength; token < ids.length; token++) {
    const top = taughtTop(ids, token, 3);
    const logprob = taughtLogprob(ids, token);
    expect(await source.token(run, address, token)).toEqual([
      { name: "large", logprob },
      {
        name: "wide",
        logprob,
        top: {
          kind: "tokens",
          ids: top.map(({ id }) => id),
          logprobs: top.map((one) => one.logprob),
          count: 3,
          pieces: expect.any(Array) as unknown,
          policyVersion: "1",
        },
      },
    ]);
  }
});

test("finds rows that are scored later, and says which changed since", async () => {
  const run = await openRun("later");
  await addTeacher(run.dir, { name: "large" });
  const file = path.join(run.dir, "teachers/large.jsonl");
  const line = await readFile(file, "utf8");
  await writeFile(file, "");
  await run.refresh();
  await using columns = new OpenColumns();
  const source = new TeacherSource(new RowSource(), columns);
  const token = sample.promptLength;
  expect(await source.token(run, address, token)).toEqual([]);
  await appendFile(file, line);
  const logprob = taughtLogprob(sample.tokenIds, token);
  expect(await source.token(run, address, token)).toEqual([{ name: "large", logprob }]);
  await appendFile(file, line.replace(/("sampleHash":")./, "$1x"));
  expect(await source.token(run, address, token)).toEqual([
    { name: "large", logprob, isOutdated: true },
  ]);
});

import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { decodeLogprobs } from "../columns/teacher-columns.ts";
import { decodeRagged, encodeRagged } from "../columns/ragged-rows.ts";
import type { Engine, TopScoreRequest } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { openTeacher } from "./open-teacher.ts";
import { scoreRun, type ScoreRunOptions, type ScoringResult } from "./score-run.ts";
import { parseTeacherRow, type TeacherRow } from "./teacher-record.ts";

let scratch: string;
let dir: string;
let count = 0;
/** The requests that the engine received. */
let asked: TopScoreRequest[] = [];

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-teacher-"));
});
afterAll(async () => await rm(scratch, { recursive: true }));

const rows = [
  { rolloutId: "a#0", segment: 0, tokenIds: [5, 6, 7, 8, 9], promptLength: 2 },
  { rolloutId: "a#1", segment: 0, tokenIds: [5, 6, 7], promptLength: 1 },
  // A row of an episode that ended before its first token.
  { rolloutId: "a#1", segment: 1, tokenIds: [5, 6], promptLength: 2 },
];

beforeEach(async () => {
  asked = [];
  dir = path.join(scratch, `run-${count++}`);
  await mkdir(dir);
  await writeFile(path.join(dir, "samples.jsonl"), rows.map(toLine).join(""));
});

function toLine(row: object): string {
  return `${JSON.stringify(row)}\n`;
}

/** An engine with logprobs of minus an eighth of the id. `fails` decides about a request. */
function teacher(fails: (ids: readonly number[]) => RolloutError | undefined = () => undefined) {
  const engine: Engine = {
    kind: "fake",
    generate: () => Promise.reject(new Error("no turn is sampled")),
    describe: async () => ({
      kind: "fake",
      model: "models/big-one",
      policyVersion: "7",
      logprobConvention: "raw",
      contextLength: 5,
    }),
    async score(request) {
      asked.push({ ...request, topCount: 0 });
      const failure = fails(request.ids);
      if (failure !== undefined) throw failure;
      return request.ids.slice(request.from).map((id) => -id / 8);
    },
    async scoreTop(request) {
      const logprobs = await this.score!(request);
      asked.splice(-1, 1, request);
      const ids = logprobs.map((_, index) => index);
      return {
        logprobs,
        tops: encodeRagged({
          counts: Uint32Array.from(logprobs, () => 1),
          ids: Int32Array.from(ids),
          logprobs: Float32Array.from(logprobs, () => -0.25),
        }),
      };
    },
    close: async () => {},
  };
  return engine;
}

async function score(
  engine: Engine,
  { topCount = 0, ...more }: Partial<ScoreRunOptions> & { topCount?: number } = {},
): Promise<ScoringResult> {
  await using opened = await openTeacher(dir, { engine, topCount });
  const { terms, writer } = opened;
  return await scoreRun(dir, { writer, terms, concurrency: 1, contextLength: 5, ...more });
}

async function written(name = "big-one"): Promise<readonly TeacherRow[]> {
  const text = await readFile(path.join(dir, "teachers", `${name}.jsonl`), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => parseTeacherRow(line)!);
}

test("each row has the logprobs of the tokens after its prompt, and the most probable ids", async () => {
  expect(await score(teacher(), { topCount: 3 })).toEqual({
    rowCount: 3,
    scoredCount: 3,
    knownCount: 0,
    tokenCount: 5,
    unreadableCount: 0,
    leftOutCount: 0,
    leftOut: [],
  });
  // A row without tokens after its prompt asks for nothing.
  expect(asked).toEqual([
    { ids: [5, 6, 7, 8, 9], from: 2, sampling: { temperature: 1 }, topCount: 3 },
    { ids: [5, 6, 7], from: 1, sampling: { temperature: 1 }, topCount: 3 },
  ]);
  const [first, second, third] = await written();
  expect(first).toMatchObject({ rolloutId: "a#0", segment: 0, sampleHash: hashRow(rows[0]) });
  expect(second!.columns.teacherLogprobs).toMatchObject({ from: 1, rows: 2, policyVersion: "7" });
  expect(third!.columns).toEqual({});
  await using columns = openColumnFolder(dir);
  const { teacherLogprobs, teacherTop } = first!.columns;
  expect([...decodeLogprobs(await columns.read(teacherLogprobs!))]).toEqual([-0.875, -1, -1.125]);
  const tops = decodeRagged(await columns.read(teacherTop!), { rows: 3, hasLogprobs: true });
  expect([...tops.ids]).toEqual([0, 1, 2]);
  const record = JSON.parse(await readFile(path.join(dir, "teachers/big-one.json"), "utf8"));
  expect(record).toEqual({
    format: 1,
    name: "big-one",
    engine: "fake",
    model: "models/big-one",
    policyVersion: "7",
    temperature: 1,
    topCount: 3,
  });
});

test("a later call scores what is new or has changed", async () => {
  await score(teacher());
  const changed = { ...rows[1]!, tokenIds: [5, 6, 8] };
  const next = { rolloutId: "a#2", segment: 0, tokenIds: [5, 6, 7, 9], promptLength: 2 };
  const file = path.join(dir, "samples.jsonl");
  await writeFile(file, [rows[0]!, changed, rows[2]!, next].map(toLine).join(""));
  asked = [];
  expect(await score(teacher())).toMatchObject({ scoredCount: 2, knownCount: 2, tokenCount: 4 });
  expect(asked.map(({ ids }) => ids)).toEqual([
    [5, 6, 8],
    [5, 6, 7, 9],
  ]);
  expect((await written()).map(({ sampleHash }) => sampleHash)).toEqual(
    [...rows, changed, next].map((row) => hashRow(row)),
  );
});

test("a torn last line is no row", async () => {
  await appendFile(path.join(dir, "samples.jsonl"), '{"rolloutId":"a#9","segm');
  expect(await score(teacher())).toMatchObject({ scoredCount: 3, unreadableCount: 1 });
});

test("rows that cannot be scored are named, and tried again later", async () => {
  const long = { rolloutId: "long", segment: 0, tokenIds: [1, 2, 3, 4, 5, 6], promptLength: 1 };
  await appendFile(path.join(dir, "samples.jsonl"), toLine(long));
  const nan = new RolloutError("engine/nan", "Cannot use a logprob: it is NaN");
  const result = await score(teacher((ids) => (ids.length === 3 ? nan : undefined)));
  expect(result).toMatchObject({ scoredCount: 2, leftOutCount: 2 });
  expect(result.leftOut).toEqual([
    { rolloutId: "a#1", segment: 0, code: "engine/nan", message: nan.message },
    {
      rolloutId: "long",
      segment: 0,
      code: "engine/prompt-too-long",
      message: "6 tokens exceed the teacher's context of 5",
    },
  ]);
  expect(await score(teacher())).toMatchObject({ scoredCount: 1, knownCount: 2, leftOutCount: 1 });
});

test("an outage ends the call, and the next one continues", async () => {
  const outage = new RolloutError("engine/unreachable", "Cannot score", { retryable: true });
  const failing = teacher((ids) => (ids.length === 3 ? outage : undefined));
  await expect(score(failing)).rejects.toBe(outage);
  expect(await written()).toHaveLength(1);
  expect(await score(teacher())).toMatchObject({ scoredCount: 2, knownCount: 1 });
});

test("ids that the teacher does not know end the call with advice", async () => {
  const refusal = new RolloutError("engine/bad-request", "Cannot score: ids[1] is 6");
  await expect(score(teacher(() => refusal))).rejects.toThrow(
    "Cannot score a#0: Cannot score: ids[1] is 6; the teacher must have the policy's vocabulary",
  );
});

test("a name belongs to one teacher", async () => {
  await score(teacher());
  await expect(score(teacher(), { topCount: 2 })).rejects.toThrow(
    "has rows by a teacher with topCount 0, and this one has 2; choose another name (--name)",
  );
  const other = teacher();
  other.describe = async () => ({
    kind: "fake",
    model: "models/big-one",
    policyVersion: "8",
    logprobConvention: "raw",
  });
  await expect(score(other)).rejects.toThrow('with policyVersion "7", and this one has "8"');
});

test("an engine that cannot score is refused", async () => {
  const none = teacher();
  delete none.score;
  delete none.scoreTop;
  await expect(score(none)).rejects.toThrow("it returns no logprobs of given ids");
  const scores = teacher();
  delete scores.scoreTop;
  await expect(score(scores, { topCount: 4 })).rejects.toThrow(
    "Cannot list the 4 most probable ids with fake",
  );
});

test("one process at a time writes the teachers' files", async () => {
  await using _first = await openTeacher(dir, { engine: teacher(), topCount: 0 });
  await expect(score(teacher())).rejects.toThrow(/teachers/);
});

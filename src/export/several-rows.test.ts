import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { sampleMetadata } from "../run/folder/episode-samples.ts";
import { rowLineageOf } from "../episode/row-lineage-of.ts";
import { toSamples, type Sample } from "../trajectory/sample.ts";
import type { Segment } from "../trajectory/segment.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { exportedReaders } from "../verify/exported/read-exported.ts";
import { verifyExport } from "../verify/exported/verify-export.ts";
import { columnObject } from "./column-document.ts";
import { exportGroup } from "./export-group.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import type { ExportRecord } from "./export-record.ts";
import type { Exporter, ExportMember, ReadyAttempt } from "./exporter.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rows-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** The turns of a row: the number of ids of each, and true if the row trains it. */
type RowPlan = readonly { readonly length: number; readonly isTrained: boolean }[];

interface AttemptPlan {
  readonly rows: readonly RowPlan[];
  /** Absent: the attempt was not scored. */
  readonly reward: number | undefined;
}

const rowPlan = fc.array(
  fc.record({ length: fc.integer({ min: 1, max: 4 }), isTrained: fc.boolean() }),
  { minLength: 1, maxLength: 3 },
);
const attemptPlan: fc.Arbitrary<AttemptPlan> = fc.record({
  rows: fc.array(rowPlan, { minLength: 1, maxLength: 8 }),
  reward: fc.option(fc.constantFrom(-1, 0, 0.25, 1), { nil: undefined, freq: 6 }),
});
const groupPlans = fc.array(fc.array(attemptPlan, { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 3,
});

/** Builds the groups. No two sampled tokens of a run have the same id. */
function build(plans: readonly (readonly AttemptPlan[])[]): readonly (readonly ExportMember[])[] {
  let nextId = 1_000;
  let index = 0;
  return plans.map((group, taskIndex) =>
    group.map(({ rows, reward }, sampleIndex) => {
      const recorder = new TrajectoryRecorder();
      for (const [row, turns] of rows.entries()) {
        // Most rows begin with the task's prompt.
        recorder.openSegment(row % 3 === 2 ? [1, 2, 7] : [1, 2, taskIndex + 10]);
        for (const [turn, { length }] of turns.entries()) {
          if (turn > 0) recorder.appendDelta({ ids: [60], text: "", closeSynthesised: false });
          const outputIds = Array.from({ length }, () => nextId++);
          recorder.appendTurn({
            outputIds,
            logprobs: outputIds.map(() => -0.5),
            finish: { type: "stop" },
            pieces: [{ requestId: "r", tokenCount: length, policyVersion: "3", finish: "stop" }],
            discarded: [],
          });
        }
        if (row % 2 === 1) recorder.appendDelta({ ids: [61], text: "", closeSynthesised: false });
      }
      const segments = recorder.toSegments().map((segment, row) => masked(segment, rows[row]!));
      const end =
        reward === undefined
          ? ({ outcome: "completed", stopReason: "unscored" } as const)
          : ({ outcome: "completed", stopReason: "finished", reward } as const);
      const story = { ...episodeRow({ taskIndex, sampleIndex }), ...end };
      const lineage = rowLineageOf({ segments });
      const samples = toSamples(segments, story, story, (segment, at) =>
        sampleMetadata(story, segment, lineage[at]),
      );
      const place = { groupIndex: taskIndex, index: index++ };
      return { rolloutId: story.rolloutId, episode: story, samples, place };
    }),
  );
}

/** Returns a segment without the turns that its row does not train. */
function masked(segment: Segment, plan: RowPlan): Segment {
  const turns = segment.turns.filter((_, turn) => plan[turn]!.isTrained);
  const isTrained = (at: number): boolean =>
    turns.some(({ start, end }) => start <= at && at < end);
  return {
    ...segment,
    turns,
    lossMask: segment.lossMask.map((_, at) => (isTrained(at) ? 1 : 0)),
    logprobs: segment.logprobs.map((logprob, at) => (isTrained(at) ? logprob : 0)),
    policyVersions: segment.policyVersions.map((version, at) => (isTrained(at) ? version : "")),
  };
}

/** The attempts that a trainer must get, with their rows. */
function wantedOf(
  groups: readonly (readonly ExportMember[])[],
  { rules }: Exporter,
): readonly { readonly member: ExportMember; readonly rows: readonly Sample[] }[] {
  return groups.flatMap((members) => {
    const all = members.map((member) => ({
      member,
      rows: member.samples.filter(({ lossMask }) => lossMask.includes(1)),
    }));
    const isFit = ({ member, rows }: (typeof all)[number]): boolean =>
      member.episode!.reward !== undefined &&
      rows.length > 0 &&
      (rows.length === 1 || !rules.segments.action.startsWith("leave-out"));
    const isAlike =
      !rules.differentPrompts.action.startsWith("leave-out") ||
      samePrompts(all.filter(isFit).map(({ rows }) => rows[0]!));
    if (!isAlike) return [];
    const needsAll = rules.unscored.action === "leave-out-group";
    return needsAll && !all.every(isFit) ? [] : all.filter(isFit);
  });
}

/** True if all rows begin with one prompt. */
function samePrompts(rows: readonly Sample[]): boolean {
  const prompts = rows.map(({ tokenIds, promptLength }) => tokenIds.slice(0, promptLength).join());
  return new Set(prompts).size < 2;
}

function trainedIds(rows: readonly Pick<Sample, "tokenIds" | "lossMask">[]): readonly number[] {
  return rows.flatMap(({ tokenIds, lossMask }) => tokenIds.filter((_, at) => lossMask[at] === 1));
}

/** The content of the file for a trainer. */
function fileOf(records: readonly ExportRecord[], { layout }: Exporter): string {
  return layout === "lines"
    ? records.map((record) => `${JSON.stringify(record)}\n`).join("")
    : JSON.stringify(columnObject(records, layout));
}

describe("attempts of several rows weigh one in the export for", () => {
  test.each(Object.keys(exporters) as ExportTarget[])("%s", async (to) => {
    const exporter: Exporter = exporters[to];
    await fc.assert(
      fc.asyncProperty(groupPlans, async (plans) => {
        const groups = build(plans);
        const records = groups.flatMap(
          (members) => exportGroup(to, members, { temperature: 1 }).records,
        );
        const wanted = wantedOf(groups, exporter);
        const read = records.map((record) => exportedReaders[to]({ ...record }));

        // Each token trains once, and no row without a trained token is there.
        const isOneRow = exporter.rules.segments.action === "one-row";
        const chosen = wanted.map(({ rows }) => (isOneRow ? [exporter.chooseRow!(rows)] : rows));
        const ids = read.flatMap(({ rows }) =>
          rows.map((row) => row.ids.values.filter((_, at) => row.mask.values[at] === 1)),
        );
        expect(ids.every((row) => row.length > 0)).toBe(true);
        expect(ids.flat()).toEqual(chosen.flatMap((rows) => trainedIds(rows)));

        // Each row has the whole reward of its attempt.
        const rewards = read.flatMap(({ rows, reward }) => rows.map(() => reward));
        expect(rewards).toEqual(
          wanted.flatMap(({ member }, at) => chosen[at]!.map(() => member.episode!.reward)),
        );

        // The group's mean counts an attempt once.
        const advantages = wanted.flatMap(({ member }, at) => {
          const { groupId } = member.episode!;
          const group = wanted.filter((one) => one.member.episode!.groupId === groupId);
          const sum = group.reduce((total, one) => total + one.member.episode!.reward!, 0);
          return chosen[at]!.map(() => member.episode!.reward! - sum / group.length);
        });
        const given = read.flatMap(({ rows }) =>
          rows.map(({ advantages: part, mask }) => part?.values[mask.values.indexOf(1)]),
        );
        if (given.some((value) => value !== undefined)) expect(given).toEqual(advantages);

        // The weights of an attempt's tokens add up to 1, by the counts that its rows carry.
        for (const [at, { member, rows }] of wanted.entries()) {
          const lineages = rows.map(({ metadata }) => metadata["lineage"]);
          const counted = trainedIds(rows).length;
          const expected = { rowCount: rows.length, attemptTokenCount: counted };
          const several = rows.map((_, row) => ({ role: "main", row, ...expected }));
          if (rows.length === 1) expect(lineages).toEqual([undefined]);
          else expect(lineages).toMatchObject(several);
          expect(chosen[at]!.every((row) => member.samples.includes(row))).toBe(true);
        }

        const file = path.join(scratch, `rows.${to}`);
        await writeFile(file, fileOf(records, exporter));
        expect((await verifyExport(file, to)).violations).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

test("NeMo-RL gets a row of the agent's own conversation, also if a title was sampled before it", () => {
  const row = (role: string, tokenIds: readonly number[], trained: number) => ({
    tokenIds,
    promptLength: 2,
    lossMask: tokenIds.map((_, at) => (at < tokenIds.length - trained ? 0 : 1)),
    metadata: { lineage: { role } },
  });
  const title = row("title", [9, 8, 1, 1, 1, 1], 4);
  const short = row("main", [1, 2, 5], 1);
  const long = row("main", [1, 2, 5, 6], 2);
  const rows = [title, short, long] as unknown as readonly Sample[];
  expect(exporters["nemo-rl"].chooseRow!(rows)).toBe(long);
});

test("verifiers gets the link of a compaction attempt only if another row continues it", () => {
  const row = (lineage: object) => ({
    tokenIds: [1, 2],
    lossMask: [0, 1],
    logprobs: [0, -0.5],
    turns: [{ turnIndex: 0, start: 1, end: 2 }],
    sample: { metadata: { lineage } },
  });
  const linked = (rows: readonly object[]) => {
    const attempt = { rows, episode: { turns: [], messages: [] } } as unknown as ReadyAttempt;
    const [{ nodes }] = exporters.verifiers.toRecords(attempt, {}) as [{ nodes: object[] }];
    return nodes.flatMap((node) => ("semantic_parents" in node ? node.semantic_parents : []));
  };
  const main = row({ role: "main" });
  const summary = row({ from: { row: 0, turn: 0, edge: "compaction_attempt" } });
  const resumed = row({ from: { row: 1, turn: 0, edge: "compaction" } });
  expect(linked([main, summary])).toEqual([]);
  expect(linked([main, summary, resumed])).toEqual([
    { node: 1, type: "compaction_attempt" },
    { node: 3, type: "compaction" },
  ]);
});

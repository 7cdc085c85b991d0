import { readFileSync } from "node:fs";
import { createColumnPart } from "../../src/columns/column-part.ts";
import type { ExpertShape } from "../../src/columns/column-specs.ts";
import type { DiagnoseOptions, RunFacts, TrainerRow } from "../../src/doctor/index.ts";
import type { Sample } from "../../src/trajectory/sample.ts";

/** A recorded pair of an engine's and a trainer's logprobs (`record-cases.mjs`). */
export interface RecordedCase {
  readonly name: string;
  readonly facts: RunFacts;
  readonly trainerVersion: number;
  /** Present if both sides have routes. */
  readonly shape?: ExpertShape;
  readonly rows: readonly RecordedRow[];
}

interface RecordedRow {
  readonly rolloutId: string;
  /** Number of tokens. */
  readonly length: number;
  /** The policy version that sampled it. */
  readonly version: number;
  readonly turns: readonly (readonly [start: number, end: number, finish: "stop" | "length"])[];
  /** The engine's logprobs of each turn. */
  readonly engine: readonly (readonly number[])[];
  /** The trainer's logprobs from two tokens before each turn to two after it. */
  readonly trainer: readonly (readonly (number | null)[])[];
  readonly engineRoutes?: string;
  readonly trainerRoutes?: string;
}

/** Reads the recorded cases. */
export function readRecordedCases(): readonly RecordedCase[] {
  const file = new URL("recorded-cases.jsonl", import.meta.url);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as RecordedCase);
}

/** Returns a case as `diagnose()` takes it. */
export function toArguments({
  facts,
  trainerVersion,
  shape,
  rows,
}: RecordedCase): readonly [readonly Sample[], readonly TrainerRow[], DiagnoseOptions] {
  const samples = rows.map((row) => toSample(row));
  const trainer = rows.map((row) => toTrainerRow(row, { trainerVersion, shape }));
  const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
  return [samples, trainer, { facts, ...(shape !== undefined && { routes: { shape, source } }) }];
}

function toSample({
  rolloutId,
  length,
  version,
  turns,
  engine,
  engineRoutes,
}: RecordedRow): Sample {
  const logprobs = Array<number>(length).fill(0);
  const lossMask = Array<0 | 1>(length).fill(0);
  for (const [turn, [start, end]] of turns.entries()) {
    lossMask.fill(1, start, end);
    for (const [index, logprob] of engine[turn]!.entries()) logprobs[start + index] = logprob;
  }
  const bytes = Buffer.from(engineRoutes ?? "", "base64");
  const part = createColumnPart({ from: 0, rows: length - 1, policyVersion: "", bytes });
  return {
    format: 1,
    rolloutId,
    groupId: rolloutId,
    taskId: rolloutId,
    outcome: "completed",
    stopReason: "finished",
    segment: 0,
    tokenIds: Array<number>(length).fill(1),
    promptLength: turns[0]![0],
    lossMask,
    logprobs,
    policyVersions: lossMask.map((bit) => (bit === 1 ? String(version) : "")),
    turns: turns.map(([start, end, finish], turnIndex) => {
      return { turnIndex, start, end, finish, promptHash: "", outputHash: "" };
    }),
    ...(engineRoutes !== undefined && { columns: { routedExperts: [part] } }),
    metadata: {},
  };
}

function toTrainerRow(
  { rolloutId, length, turns, trainer, trainerRoutes }: RecordedRow,
  {
    trainerVersion,
    shape,
  }: { readonly trainerVersion: number; readonly shape: ExpertShape | undefined },
): TrainerRow {
  const logprobs = new Float64Array(length).fill(NaN);
  for (const [turn, [start]] of turns.entries()) {
    for (const [index, value] of trainer[turn]!.entries()) {
      logprobs[start - 2 + index] = value ?? NaN;
    }
  }
  const ids = Buffer.from(trainerRoutes ?? "", "base64");
  return {
    rolloutId,
    segment: 0,
    logprobs,
    policyVersion: String(trainerVersion),
    ...(shape !== undefined && {
      routedExperts: {
        rows: length,
        layerCount: shape.layerCount,
        perToken: shape.perToken,
        ids,
      },
    }),
  };
}

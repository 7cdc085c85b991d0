import { createColumnPart } from "../columns/column-part.ts";
import { encodeLogprobs, type TeacherParts } from "../columns/teacher-columns.ts";
import { UsageError } from "../errors.ts";
import type { Engine } from "../engine/engine.ts";

/** A row that is scored. */
export interface ScoredRow {
  readonly tokenIds: readonly number[];
  /** Number of leading ids that are not scored, at least 1. */
  readonly promptLength: number;
}

/** The way in which a teacher scores rows. */
export interface ScoringTerms {
  readonly engine: Engine;
  /** Number of the most probable ids in each place. 0: none are listed. */
  readonly topCount: number;
  /** The version of the teacher's weights. */
  readonly policyVersion: string;
}

/**
 * Scores a row: the teacher's logprob of each token after the prompt, and the most probable ids in its place. The
 * softmax has the temperature 1.
 *
 * @throws RolloutError as `Engine.score()` does.
 * @throws UsageError if the engine cannot score, or list the most probable ids.
 */
export async function scoreRow(
  { tokenIds: ids, promptLength: from }: ScoredRow,
  { engine, topCount, policyVersion }: ScoringTerms,
  signal?: AbortSignal,
): Promise<TeacherParts> {
  const rows = ids.length - from;
  if (rows === 0) return {};
  const place = { from, rows, policyVersion };
  const request = { ids, from, sampling: { temperature: 1 } };
  const options = signal && { signal };
  requireScoring(engine, topCount);
  if (topCount === 0) {
    const logprobs = await engine.score!(request, options);
    return { teacherLogprobs: createColumnPart({ ...place, bytes: encodeLogprobs(logprobs) }) };
  }
  const { logprobs, tops } = await engine.scoreTop!({ ...request, topCount }, options);
  return {
    teacherLogprobs: createColumnPart({ ...place, bytes: encodeLogprobs(logprobs) }),
    teacherTop: createColumnPart({ ...place, bytes: tops }),
  };
}

/**
 * Requires an engine that returns the logprobs of given ids.
 *
 * @throws UsageError if the engine cannot score, or list the most probable ids.
 */
export function requireScoring(engine: Engine, topCount: number): void {
  const { kind } = engine;
  if (engine.score === undefined) {
    throw new UsageError(
      `Cannot score with ${kind}: it returns no logprobs of given ids; expected sglang, vllm, reference or llama`,
    );
  }
  if (topCount === 0 || engine.scoreTop !== undefined) return;
  throw new UsageError(
    `Cannot list the ${topCount} most probable ids with ${kind}: expected sglang, vllm or reference, or no such list`,
  );
}

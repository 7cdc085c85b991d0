import type { ExportRecord } from "../export-record.ts";
import { placeCandidates } from "./candidate-array.ts";
import type { Candidate, TaughtRow } from "./taught-row.ts";
import type { TeacherExport, TeacherSurroundings } from "./teacher-export.ts";

/**
 * Exports `RolloutSample` of TRL's AsyncDistillationTrainer in place of the results of a `rollout_func`: the most
 * probable ids at each position by rank, always including the token itself, and filled with the id -1 and the logprob
 * -inf. Rows are not shifted. Each row of an attempt is a sample.
 *
 * **Source:** TRL 1.16.0, trl/experimental/async_distillation/async_rollout_worker.py (`RolloutSample`,
 * `_generate_and_score_one`).
 */
export const trlTeacher: TeacherExport = {
  logprobs: {
    action: "refuse",
    why: "TRL's distillation takes the first id at each position as the teacher's most probable one",
  },
  top: {
    action: "export",
    why: "`sample.teacher_topk_ids` and `teacher_topk_logprobs`: int32 and float32 [T, K + 1] by rank, with -1 and -inf after the last id",
    setting: "AsyncDistillationTrainer(rollout_worker=…)",
    carrier: "file",
    rules: {
      segments: { action: "keep", why: "each becomes a sample" },
      environmentTail: { action: "keep", why: "`completion_mask` is 0 there" },
    },
    add: async (record, [row], surroundings) => await toSample(record, row!, surroundings),
  },
};

async function toSample(
  { group, rollout, env_reward: reward, logprobs }: ExportRecord,
  row: TaughtRow,
  surroundings: TeacherSurroundings,
): Promise<ExportRecord> {
  const { tokenIds, lossMask, promptLength } = row;
  const candidates = tokenIds.map((_, token) =>
    token < promptLength ? [] : withToken(row.topOf(token), row, token),
  );
  const form = { width: surroundings.topCount + 1, padding: { id: -1, logprob: -Infinity } };
  const arrays = await placeCandidates(candidates, form, surroundings);
  return {
    sample: {
      input_ids: tokenIds,
      completion_mask: lossMask,
      teacher_topk_ids: arrays.ids,
      teacher_topk_logprobs: arrays.logprobs,
      teacher_id: surroundings.name,
    },
    logprobs: [...tokenIds.slice(0, promptLength).map(() => 0), ...(logprobs as readonly number[])],
    reward,
    group,
    rollout,
  };
}

/** Returns the candidates by rank. Adds the token itself at the end if it is not among them. */
function withToken(
  candidates: readonly Candidate[],
  row: TaughtRow,
  token: number,
): readonly Candidate[] {
  const id = row.tokenIds[token]!;
  if (candidates.some((candidate) => candidate.id === id)) return candidates;
  return [...candidates, { id, logprob: row.logprobOf(token) }];
}

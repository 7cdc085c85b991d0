import { UsageError } from "../../errors.ts";
import type { ExportRecord } from "../export-record.ts";
import { placeCandidates } from "./candidate-array.ts";
import type { Candidate, TaughtRow } from "./taught-row.ts";
import type { TeacherExport, TeacherSurroundings } from "./teacher-export.ts";

/** The candidate in rows without a teacher's value: those of the prompt's ids, and the last row. */
const dummy: Candidate = { id: 0, logprob: 0 };

const setting = "distillation.distillation_loss.loss_mode";

/**
 * Exports verl's `teacher_ids` and `teacher_logprobs`: row i is about token i + 1, and the last row is a dummy of
 * zeros, as in verl's rows of its own teacher. Rows of the prompt are dummies, too: verl's losses leave them out.
 *
 * **Source:** verl 0.9.1, verl/experimental/agent_loop/agent_loop.py (`AgentLoopOutput.as_dict()`),
 * verl/workers/rollout/vllm_rollout/utils.py (`extract_prompt_logprobs`) and verl/trainer/distillation/losses.py.
 */
export const verlTeacher: TeacherExport = {
  logprobs: {
    action: "export",
    why: "`extra_fields.teacher_ids` and `teacher_logprobs`: int32 and float32 [T, 1]; row i is for id i + 1, and the last row is zero",
    setting: `${setting}=k1`,
    carrier: "file",
    add: async (record, rows, surroundings) =>
      await addToOutputs(record, rows, {
        surroundings,
        width: 1,
        candidatesOf: (row, token) => [{ id: row.tokenIds[token]!, logprob: row.logprobOf(token) }],
      }),
  },
  top: {
    action: "export",
    why: "`extra_fields.teacher_ids` and `teacher_logprobs`: int32 and float32 [T, K]; row i is for id i + 1, and the last row is zero",
    setting: `${setting}=forward_kl_topk`,
    carrier: "file",
    add: async (record, rows, surroundings) =>
      await addToOutputs(record, rows, {
        surroundings,
        width: surroundings.topCount,
        candidatesOf: (row, token) => requireAll(row.topOf(token), token, surroundings),
      }),
  },
};

/**
 * Requires the same number of candidates for each token.
 *
 * @throws UsageError if a token has fewer candidates than others: verl has no filler whose loss is zero.
 */
function requireAll(
  candidates: readonly Candidate[],
  token: number,
  { topCount, name }: TeacherSurroundings,
): readonly Candidate[] {
  if (candidates.length === topCount) return candidates;
  throw new UsageError(
    `Cannot export to verl with the teacher ${name}: it listed ${candidates.length} ids in the place of token ${token}, ` +
      `expected ${topCount} in each place; score again with fewer (turnwright score --top), or leave out --teacher-top`,
  );
}

interface Form {
  readonly surroundings: TeacherSurroundings;
  readonly width: number;
  readonly candidatesOf: (row: TaughtRow, token: number) => readonly Candidate[];
}

async function addToOutputs(
  record: ExportRecord,
  rows: readonly TaughtRow[],
  form: Form,
): Promise<ExportRecord> {
  const outputs = (record["outputs"] as readonly ExportRecord[] | undefined) ?? [record];
  const added: ExportRecord[] = [];
  for (const [index, output] of outputs.entries()) {
    const fields = await teacherFields(rows[index]!, form);
    added.push({ ...output, extra_fields: { ...(output["extra_fields"] as object), ...fields } });
  }
  return "outputs" in record ? { ...record, outputs: added } : added[0]!;
}

async function teacherFields(
  row: TaughtRow,
  { surroundings, width, candidatesOf }: Form,
): Promise<object> {
  const dummies = Array.from({ length: width }, () => dummy);
  const shifted = row.tokenIds.map((_, index) => {
    const token = index + 1;
    const isScored = token >= row.promptLength && token < row.tokenIds.length;
    return isScored ? candidatesOf(row, token) : dummies;
  });
  const { ids, logprobs } = await placeCandidates(shifted, { width, padding: dummy }, surroundings);
  return { teacher_ids: ids, teacher_logprobs: logprobs };
}

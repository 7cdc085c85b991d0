import { float32Array } from "../columns/float32-array.ts";
import { int32Array } from "../columns/int32-array.ts";
import type { ExportRecord } from "../export-record.ts";
import type { Candidate, TaughtRow } from "./taught-row.ts";
import type { TeacherExport, TeacherSurroundings } from "./teacher-export.ts";

interface Inputs {
  readonly logprobs: { readonly data: readonly number[] };
  readonly advantages: { readonly data: readonly number[] };
}

/**
 * Adds a teacher to tinker's datums: minus the reverse KL of each sampled token in its advantage, or the most probable ids
 * as targets of the loss `cross_entropy`, with their probabilities over these ids as weights.
 *
 * **Source:** tinker-cookbook 0.6.1, tinker_cookbook/distillation/train_on_policy.py (`incorporate_kl_penalty`) and
 * tinker_cookbook/distillation/sdft.py (`build_topk_distillation_datums`).
 */
export const tinkerTeacher: TeacherExport = {
  logprobs: {
    action: "export",
    why: "`advantages`: the weight (1 by default) times the teacher's logprob minus the policy's is added",
    carrier: "record",
    hasWeight: true,
    add: addToAdvantages,
  },
  top: {
    action: "export",
    why: "`cross_entropy_inputs`, beside the others: `target_tokens` int32 and `weights` float32 [N, K], shifted by one like all inputs",
    setting: 'forward_backward(data, "cross_entropy")',
    carrier: "file",
    add: addTargets,
  },
};

function addToAdvantages(
  record: ExportRecord,
  [row]: readonly TaughtRow[],
  { weight = 1 }: TeacherSurroundings,
): ExportRecord {
  const { lossMask, logprobOf } = row!;
  const inputs = record["loss_fn_inputs"] as Inputs;
  const { logprobs, advantages } = inputs;
  const data = advantages.data.map((advantage, index) => {
    const token = index + 1;
    if (lossMask[token] !== 1) return advantage;
    return advantage + weight * (logprobOf(token) - logprobs.data[index]!);
  });
  return { ...record, loss_fn_inputs: { ...inputs, advantages: { ...advantages, data } } };
}

async function addTargets(
  record: ExportRecord,
  [row]: readonly TaughtRow[],
  { topCount, place }: TeacherSurroundings,
): Promise<ExportRecord> {
  const { tokenIds, lossMask, topOf } = row!;
  const count = tokenIds.length - 1;
  const ids = new Int32Array(count * topCount);
  const weights = new Float32Array(count * topCount);
  for (let index = 0; index < count; index++) {
    if (lossMask[index + 1] !== 1) continue;
    const candidates = topOf(index + 1);
    ids.set(
      candidates.map(({ id }) => id),
      index * topCount,
    );
    weights.set(sharesOf(candidates), index * topCount);
  }
  const shape = [count, topCount];
  const target_tokens = await place(int32Array(shape, [ids]));
  return {
    ...record,
    cross_entropy_inputs: { target_tokens, weights: await place(float32Array(shape, weights)) },
  };
}

/** Returns the probabilities of candidates, divided by their sum. */
function sharesOf(candidates: readonly Candidate[]): readonly number[] {
  const probabilities = candidates.map(({ logprob }) => Math.exp(logprob));
  const sum = probabilities.reduce((total, one) => total + one, 0);
  return probabilities.map((one) => one / sum);
}

import type { TeacherExport } from "./teacher-export.ts";
import type { TaughtRow } from "./taught-row.ts";

/** Returns the teacher's logprob of each token after the prompt. */
function responseLogprobs({ tokenIds, promptLength, logprobOf }: TaughtRow): readonly number[] {
  return Array.from({ length: tokenIds.length - promptLength }, (_, index) =>
    logprobOf(promptLength + index),
  );
}

const why = "`teacher_log_probs`: a list with a logprob for each id of the response";

/**
 * Exports slime's `teacher_log_probs`, also for tokens of the environment, because slime subtracts the complete list
 * from the policy's logprobs.
 *
 * **Source:** THUDM/slime 624b824a, slime/utils/types.py (`Sample`) and slime/backends/megatron_utils/loss.py
 * (`apply_opd_kl_to_advantages`).
 */
export const slimeTeacher: TeacherExport = {
  logprobs: {
    action: "export",
    why,
    setting: "--use-opd --opd-type sglang --opd-kl-coef C",
    carrier: "record",
    add: (record, [row]) => ({ ...record, teacher_log_probs: responseLogprobs(row!) }),
  },
  top: { action: "refuse", why: "slime has no field for the most probable ids" },
};

/**
 * Exports miles' `teacher_log_probs`. Leaves `opd_reverse_kl` absent: miles would read it in place of the logprobs, and
 * its values depend on miles' own settings.
 *
 * **Source:** radixark/miles 31f1ca961, miles/utils/types.py (`Sample.validate`) and
 * miles/backends/training_utils/loss_hub/opd.py.
 */
export const milesTeacher: TeacherExport = {
  ...slimeTeacher,
  top: {
    action: "refuse",
    why: "miles computes `opd_reverse_kl` from its own requests for the most probable ids of both models",
  },
};

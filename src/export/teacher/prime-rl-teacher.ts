import type { TeacherExport } from "./teacher-export.ts";

/**
 * Exports prime-rl's `ref_logprobs` with the weights that its algorithm `opd` gives: the sampled tokens have weight 1
 * in the loss to the reference, and weight 0 in the loss to the reward. Other tokens have the logprob 0, as in
 * prime-rl's rows with its own teacher.
 *
 * **Source:** prime-rl 559b44772, src/prime_rl/transports/rollouts/types.py (`TrainingSample`) and
 * src/prime_rl/orchestrator/algo/routing.py (`stamp_loss_routing`).
 */
export const primeRlTeacher: TeacherExport = {
  logprobs: {
    action: "export",
    why: "`sample.ref_logprobs` and `ref_kl_weights`: a number for each id, 0 where the mask is 0; `rl_weights` are 0",
    carrier: "record",
    add(record, [row]) {
      const { tokenIds, lossMask, logprobOf } = row!;
      const sample = {
        ...(record["sample"] as object),
        ref_logprobs: lossMask.map((bit, token) => (bit === 1 ? logprobOf(token) : 0)),
        rl_weights: tokenIds.map(() => 0),
        ref_kl_weights: [...lossMask],
      };
      return { ...record, sample };
    },
  },
  top: { action: "refuse", why: "prime-rl has no field for the most probable ids" },
};

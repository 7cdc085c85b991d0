"""SkyRL, step-wise: the check of a generator's output, the trainer's steps up to the advantages, and the loss's reductions."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/pkgs/skyrl")
import json
import types

import torch
from skyrl.backends.skyrl_train.training_batch import TrainingInputBatch, pad_training_input_batch
from skyrl.backends.skyrl_train.utils import ppo_utils
from skyrl.train.dataset.preprocess import compute_prompt_boundaries, convert_prompts_responses_to_batch_tensors
from skyrl.train.generators.base import TrajectoryID
from skyrl.train.trainer import RayPPOTrainer
from skyrl.train.utils.trainer_utils import validate_generator_output
from turnwright.trainers.skyrl_rows import to_output

S, run = types.SimpleNamespace, opened()
algorithm = S(advantage_estimator="grpo", gamma=1.0, lambd=1.0, grpo_norm_by_std=True, zero_variance_filter=False,
              zero_variance_filter_tol=0.0, loss_reduction="token_mean", dynamic_sampling=S(type=None))
cfg = S(trainer=S(algorithm=algorithm),
        generator=S(step_wise_trajectories=True, merge_stepwise_output=False, n_samples_per_prompt=len(run.groups[0])))


def check(out):
    """Pads for eight ranks."""
    validate_generator_output(len(run.attempts), out, step_wise=True)
    trainer = S(cfg=cfg, all_metrics={})
    out, uids = RayPPOTrainer.postprocess_generator_output(trainer, out, [one.instance_id for one in out["trajectory_ids"]])
    mean = sum(a.reward for a in run.attempts) / len(run.attempts)
    assert abs(trainer.all_metrics["reward/avg_raw_reward"] - mean) < 1e-6, "metrics count attempts"
    columns = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "rollout_logprobs")
    ids, attention, answers, rewards, mask, logprobs, *_ = convert_prompts_responses_to_batch_tensors(0, *(out[name] for name in columns))
    batch = TrainingInputBatch({"sequences": ids, "attention_mask": attention, "response_mask": answers, "rewards": rewards,
                                "loss_mask": mask, "rollout_logprobs": logprobs, "values": None})
    batch.metadata = {"uids": uids, "is_last_step": out["is_last_step"], "avg_response_length": 1.0}
    batch = RayPPOTrainer.compute_advantages_and_returns(trainer, pad_training_input_batch(batch, -len(run.pairs) % 8))
    run.check_advantages([own[0] for own in trained(batch["advantages"][:len(run.pairs)], mask)], "std")
    bounds = compute_prompt_boundaries([a.group for a, _ in run.pairs])
    for reduction, law in (("token_mean", "token"), ("seq_mean_token_sum_norm", "token"), ("prompt_mean", "prompt")):
        scaled = ppo_utils.apply_loss_reduction_to_advantages_minibatch(torch.ones_like(mask), mask, reduction, 1, 64, bounds)
        run.check_weights(trained(scaled, mask), law)


exported = json.load(open(sys.argv[2]))
exported["trajectory_ids"] = [TrajectoryID(**one) for one in exported["trajectory_ids"]]
check(exported)
ids = [TrajectoryID(instance_id=a.group, repetition_id=number) for group in run.groups for number, a in enumerate(group)]
check(to_output([a.handed_over() for a in run.attempts], ids, cfg))
run.done("skyrl", "export and live by token", "by prompt with prompt_mean")

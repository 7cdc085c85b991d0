"""agent-lightning on verl: the events of an attempt by its own route, its adapter, rollout-level advantages and its loss."""
from several_rows import *

sys.path[:0] = [f"{ROOT}/pkgs/agentlightning", f"{ROOT}/pkgs/verl"]
import types

import torch
from agentlightning.schemas import Event
from agentlightning.server.routes.events import _dedupe_model_requests_by_prompt_token_ids, _to_triplet_format
from agentlightning.verl.agl_rollout_manager import CompletedRollout, Triplet
from agentlightning.verl.per_rollout_loss import compute_policy_loss_per_rollout_mean, normalize_advantages_by_rollout
from agentlightning.verl.rollout_adapter import RolloutAdapter
from agentlightning.verl.rollout_level_advantage import compute_rollout_level_advantage
from verl.trainer.ppo import core_algos

S = types.SimpleNamespace


def rollout_of(a, sent):
    events = [Event(**one, rollout_id=a.id, attempt_id="0", timestamp=0.0) for one in sent]
    kept = _dedupe_model_requests_by_prompt_token_ids([_to_triplet_format(event) for event in events])
    calls = [event.data for event in kept if event.event_type == "model_request"]
    (reward,) = [event.data for event in kept if event.event_type == "reward"]
    triplets = [Triplet(prompt={"token_ids": call["prompt_token_ids"]},
                        response={"token_ids": call["response_token_ids"], "log_probs": call["response_log_probs"]}) for call in calls]
    return CompletedRollout(rollout_id=a.id, data_id=a.group, step=0, sample_idx_in_step=a.place, enqueue_time=0.0,
                            triplets=triplets, final_reward=reward["value"])


class Config(S):
    def get(self, name, default=None):
        return getattr(self, name, default)


run = opened()
adapter = RolloutAdapter(max_prompt_length=run.longest, max_response_length=run.longest, device=torch.device("cpu"), pad_token_id=0,
                         trace_aggregator_level="trajectory")
batch, metrics = adapter.get_train_data_batch([rollout_of(a, record["events"]) for a, record in zip(run.attempts, native(sys.argv[2]))])
assert metrics["training/n_rollouts"] == len(run.attempts) and len(batch) == len(run.pairs)
mask = batch.batch["response_mask"].float()
for (_, row), prompt, answer, own in zip(run.pairs, batch.batch["prompts"], batch.batch["responses"], mask.sum(1)):
    asked, answered, *_ = response(row)
    same(prompt.tolist()[-len(asked):] + answer.tolist()[:len(answered)], asked + answered, "ids")
    assert own == sum(row["lossMask"])
batch.batch["token_level_rewards"] = batch.batch["token_level_scores"]
batch.non_tensor_batch["uid"] = batch.non_tensor_batch["data_id_list"]
scored, _ = compute_rollout_level_advantage(batch, adv_estimator=core_algos.AdvantageEstimator.GRPO, gamma=1.0, lam=1.0,
                                            num_repeat=len(run.groups[0]), norm_adv_by_std_in_grpo=True, config={})
# Its rewards are bfloat16.
run.check_advantages([own[0] for own in trained(scored.batch["advantages"], mask)], "std", tolerance=0.01)
ones, leaf = torch.ones_like(mask), torch.zeros_like(mask, requires_grad=True)
about = {"dp_size": 1, "batch_num_tokens": int(mask.sum()), "global_batch_size": len(mask), "loss_scale_factor": None}
config = Config(clip_ratio=0.2, clip_ratio_low=None, clip_ratio_high=None, global_batch_info=about)
scaled = normalize_advantages_by_rollout(ones, mask, batch.non_tensor_batch["rollout_id_list"], num_trained_rows=len(batch))
loss, _ = compute_policy_loss_per_rollout_mean(torch.zeros_like(mask), leaf, scaled, mask, config=config)
run.check_weights(trained(gradients(loss, leaf), mask), "attempt")
leaf = torch.zeros_like(mask, requires_grad=True)
loss, _ = core_algos.compute_policy_loss_vanilla(torch.zeros_like(mask), leaf, ones, mask, "token-mean", config)
run.check_weights(trained(gradients(loss, leaf), mask), "token")
run.done("agent-lightning", "events by attempt with per_rollout_mean", "by token with token-mean")

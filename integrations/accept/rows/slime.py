"""slime: its conversion with `by_attempt`, its schedule over two ranks, its loss and its reducer."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/src/slime")
import asyncio
import types

import torch
from slime.observability.rollout_data_utils import validate_rollout_id_annotated
from slime.utils.dp_schedule import build_dp_schedule
from slime.utils.ppo_utils import compute_policy_loss
from slime.utils.types import Sample
from turnwright.trainers import slime as shim
from turnwright.trainers.slime_rewards import by_attempt, differ

S, SOURCE = types.SimpleNamespace, f"{ROOT}/src/slime/slime"
source = load_defs(f"{SOURCE}/utils/data.py", ["get_source"], {"Sample": Sample, "Any": object})
rollout = load_defs(f"{SOURCE}/ray/rollout.py", ["RolloutManager._post_process_rewards", "RolloutManager._convert_samples_to_train_data"],
                    {"torch": torch, "Sample": Sample, "validate_rollout_routed_experts_for_replay": None, **source})
reducer_of = load_defs(f"{SOURCE}/backends/megatron_utils/cp_utils.py", ["get_sum_of_sample_mean"],
                       {"torch": torch, "mpu": S(get_context_parallel_world_size=lambda: 1)})["get_sum_of_sample_mean"]
run = opened()
args = S(reward_key=None, advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True,
         n_samples_per_prompt=len(run.groups[0]), rollout_batch_size=len(run.groups), rollout_top_p=1.0,
         custom_reward_post_process_path="turnwright.trainers.slime_rewards.by_attempt", use_dynamic_batch_size=True,
         use_rollout_routing_replay=False)


def convert(samples):
    manager = S(args=args, custom_reward_post_process_func=by_attempt, custom_convert_samples_to_train_data_func=None)
    manager._post_process_rewards = lambda them: rollout["_post_process_rewards"](manager, them)
    return rollout["_convert_samples_to_train_data"](manager, samples)


def weights_of(data, per_token):
    """Over the micro-batches of two ranks, each scaled as slime and Megatron scale it."""
    lengths, answers = [len(ids) for ids in data["tokens"]], data["response_lengths"]
    ranks = dict(dp_size=2, cp_size=1, vpp_size=1, microbatch_group_size_per_vp_stage=1)
    settings = S(use_dynamic_batch_size=True, max_tokens_per_gpu=2 * run.longest, balance_by_flops=False, balance_data=False)
    parts, micro_batches, _, sizes = build_dp_schedule(
        settings, ranks, lengths, global_batch_size=len(run.attempts), rollout_indices=data["rollout_ids"])
    weights = [[] for _ in lengths]
    for part, bins in zip(parts, micro_batches):
        for rows in ([part[place] for place in one] for one in bins):
            masks = [torch.tensor(data["loss_masks"][i], dtype=torch.float32) for i in rows]
            old = torch.cat([torch.tensor(data["rollout_log_probs"][i]) for i in rows])
            new = old.clone().requires_grad_()
            loss, _ = compute_policy_loss(old - new, torch.ones_like(old), 0.2, 0.28)
            sums = [torch.tensor(float(data["rollout_mask_sums"][i])) for i in rows]
            reduce = reducer_of([lengths[i] for i in rows], [answers[i] for i in rows], masks, sums, per_token)
            scale = sum(max(1, sum(mask)) for mask in data["loss_masks"]) if per_token else sizes[0]
            found = gradients(reduce(loss) / scale, new).split([answers[i] for i in rows])
            for i, own in zip(rows, trained(found, masks)):
                weights[i] = own
    return weights


def check(samples):
    data = convert(samples)
    for (_, row), ids in zip(run.pairs, data["tokens"]):
        same(ids[:len(tail(row)[0])], tail(row)[0], "tokens")
    run.check_advantages(data["rewards"], "std")
    run.check_weights(weights_of(data, False), "attempt")
    run.check_weights(weights_of(data, True), "token")


check([Sample.from_dict(record) for record in native(sys.argv[2])])


async def played(sample, *_):
    """Stands in for a rollout over the service."""
    return run.attempts[sample.index].handed_over()


shim.play_sample, live = played, []
for number, group in enumerate(run.groups):
    asked = [Sample(group_index=number, index=a.place, prompt="0", metadata={}) for a in group]
    live.append([asyncio.run(shim.generate(args, sample, {})) for sample in asked])
validate_rollout_id_annotated(live)
assert all(differ(args, group).keep for group in live)
check([sample for group in live for own in group for sample in own])
run.done("slime", "export and live by attempt", "by token with --calculate-per-token-loss")

"""slime: its dump's reader, its conversion with the checks of routes and sets, its alignment of routes, its mask of sets, its distillation."""
from column_rows import *

import sys
import types

sys.path.insert(0, f"{ROOT}/src/slime")
import torch
from slime.observability.rollout_data_utils import tensorize_rollout_data_for_training
from slime.utils.types import Sample
from turnwright.slime_dump import write_slime_dump
from turnwright.trainers.slime_sample import fill

S, SOURCE = types.SimpleNamespace, f"{ROOT}/src/slime/slime"
run = Run(("routedExperts", "keptTokens"))
source = load_defs(f"{SOURCE}/utils/data.py", ["get_source"], {"Sample": Sample, "Any": object})
validate = load_defs(f"{SOURCE}/observability/rollout_data_utils.py", ["validate_rollout_routed_experts_for_replay"], {"torch": torch})
rollout = load_defs(f"{SOURCE}/ray/rollout.py", ["RolloutManager._post_process_rewards", "RolloutManager._convert_samples_to_train_data"],
                    {"torch": torch, "Sample": Sample, **validate, **source})
mpu = S(**{f"get_{kind}_parallel_{what}": (lambda n=n: n) for kind in ("tensor_model", "context") for what, n in (("world_size", 1), ("rank", 0))})
align = load_defs(f"{SOURCE}/backends/megatron_utils/cp_utils.py", ["_pad_routed_experts", "prepare_routed_experts_for_routing_replay"],
                  {"torch": torch, "mpu": mpu, "slice_with_cp": lambda rows, _: rows})["prepare_routed_experts_for_routing_replay"]
masks = load_defs(f"{SOURCE}/backends/megatron_utils/loss.py", ["_fill_topp_mask_rows", "_build_topp_keep_mask"],
                  {"torch": torch, "mpu": mpu, "get_logits_and_tokens_offset_with_cp": None})["_build_topp_keep_mask"]
layers, experts = run.shape["layerCount"], run.shape["expertCount"]
args = S(reward_key=None, advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True, n_samples_per_prompt=2,
         rollout_batch_size=1, custom_reward_post_process_path=None, rollout_top_p=0.8, use_rollout_routing_replay=True,
         num_layers=layers, moe_router_topk=run.shape["perToken"], moe_layer_freq=[0] + [1] * (layers - 1))


def convert(samples):
    manager = S(args=args, custom_reward_post_process_func=lambda _, own: ([s.reward for s in own],) * 2,
                custom_convert_samples_to_train_data_func=None)
    manager._post_process_rewards = lambda own: rollout["_post_process_rewards"](manager, own)
    for sample in samples:
        sample._validate_response_metadata_lengths()
    return rollout["_convert_samples_to_train_data"](manager, samples)


def aligned(routes, tokens):
    return align(routes, [torch.tensor(ids) for ids in tokens], num_experts=experts, data_pad_size_multiplier=8,
                 sequence_parallel=False, allgather_cp=False)


def check(samples, what):
    data = convert(samples)
    whole, at = aligned(data["rollout_routed_experts"], data["tokens"]), 0
    assert int(whole.max()) < experts and int(whole.min()) >= 0, "the padding has no experts"
    lengths, answers = [len(ids) for ids in data["tokens"]], data["response_lengths"]
    keep = masks(sum(lengths), 200, torch.device("cpu"), data["rollout_top_p_token_ids"], data["rollout_top_p_token_offsets"],
                 lengths, answers, False)
    for sample, length, answer in zip(samples, lengths, answers):
        name, index = sample.metadata["rollout"], (sample.metadata.get("lineage") or {}).get("row", 0)
        run.routes(whole[at:at + length], name, index, sample.tokens, what)
        for place, kept in enumerate(run.kept(name, index, length - answer, length), at + length - answer - 1):
            got = keep[place].nonzero().flatten().tolist()
            assert got == (sorted(set(kept)) if kept else []), f"{what} of {name}: the set that masks the logits at {place}"
        at += length


dump = sys.argv[3] + ".{rollout_id}.pt"
records = run.exported()
write_slime_dump(records, dump, groups=len({record["group_index"] for record in records}))
loaded = [Sample.from_dict(one) for one in torch.load(dump.format(rollout_id=0), weights_only=False)["samples"]]
check(loaded, "export")
_, groups = run.scored()
live = [sample for number, group in enumerate(groups) for place, name in enumerate(group)
        for sample in fill(Sample(group_index=number, index=2 * number + place, metadata={}), run.attempt(name), "slime", [])]
assert len(live) == len(loaded)
check(live, "live")
first = loaded[0]
refused("a row for each id", lambda: aligned([torch.cat([first.rollout_routed_experts] + [first.rollout_routed_experts[-1:]])], [first.tokens]))
refused("routes without the dense layer", lambda: validate["validate_rollout_routed_experts_for_replay"]([first.rollout_routed_experts[:, 1:]], args))
opd = load_defs(f"{SOURCE}/backends/megatron_utils/loss.py", ["apply_opd_kl_to_advantages"], {"torch": torch})["apply_opd_kl_to_advantages"]
records = taught()
write_slime_dump(records, dump, groups=len({record["group_index"] for record in records}))
samples = [Sample.from_dict(one) for one in torch.load(dump.format(rollout_id=0), weights_only=False)["samples"]]
data = convert(samples)
tensorize_rollout_data_for_training(data)
student, advantages = data["rollout_log_probs"], [torch.zeros(length) for length in data["response_lengths"]]
opd(S(opd_kl_coef=2.0, opd_type="sglang"), data, advantages, student)
for sample, own, policy in zip(samples, advantages, student):
    start = len(sample.tokens) - sample.response_length
    want = [2 * (teacher_logprob(sample.tokens, start + at) - float(logprob)) for at, logprob in enumerate(policy)]
    assert own.tolist() == want, f"distillation of {sample.metadata['rollout']}"
run.done("slime", f" as {first.rollout_routed_experts.dtype}, with the sets of {len(loaded)} rows, {len(samples)} rows distilled")

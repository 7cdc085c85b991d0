"""miles: its conversion, which counts an attempt once by its `rollout_id`, and its loss's reducer."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/src/miles")
import asyncio
import itertools
import logging
import types
from dataclasses import dataclass
from typing import Any, Callable

import torch
from miles.rollout.filter_hub.dynamic_sampling_filters import check_reward_nonzero_std
from miles.utils.types import Sample

S, SOURCE = types.SimpleNamespace, f"{ROOT}/src/miles/miles"
before = load_defs(f"{SOURCE}/ray/rollout/rollout_data_conversion.py",
                   ["postprocess_rollout_data", "validate_compact_rollout_ids", "_compute_dynamic_global_batch_size"],
                   {"itertools": itertools, "Sample": Sample, "logger": logging.getLogger(), "is_multi_lora_enabled": lambda args: False})
after = load_defs(f"{SOURCE}/ray/rollout/train_data_conversion.py",
                  ["_compute_rollout_mask_sums", "_reward_group_segments", "_normalize_rewards_by_rollout", "_post_process_rewards"],
                  {"torch": torch, "Any": Any, "Sample": Sample})
whole = S(cp=S(size=1), effective_cp=S(size=1))
reducer_of = load_defs(f"{SOURCE}/backends/training_utils/cp_utils.py", ["get_sum_of_sample_mean"],
                       {"torch": torch, "Callable": Callable, "get_parallel_state": lambda: whole})["get_sum_of_sample_mean"]
run = opened()
args = S(reward_key=None, advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True,
         n_samples_per_prompt=len(run.groups[0]), rollout_batch_size=len(run.groups), global_batch_size=len(run.attempts),
         disable_rollout_trim_samples=False, use_dynamic_global_batch_size=False, use_dynamic_batch_size=True)


def weights_of(samples, **how):
    leaf = torch.zeros(sum(s.response_length for s in samples), requires_grad=True)
    masks = [torch.tensor(s.loss_mask, dtype=torch.float32) for s in samples]
    answers = [s.response_length for s in samples]
    reduce = reducer_of([len(s.tokens) for s in samples], answers, masks, **how)
    return trained(gradients(reduce(leaf), leaf).split(answers), masks)


def check(nested):
    """`nested` are groups of attempts of samples."""
    assert all(check_reward_nonzero_std(args, group).keep for group in nested)
    samples, _ = before["postprocess_rollout_data"](args, nested, {"dp_size": 2})
    for (_, row), sample in zip(run.pairs, samples):
        same(sample.tokens[:len(tail(row)[0])], tail(row)[0], "tokens")
    run.check_advantages(after["_post_process_rewards"](args, samples, None)[1], "std")
    sums = after["_compute_rollout_mask_sums"]([s.index if s.rollout_id is None else s.rollout_id for s in samples], [s.loss_mask for s in samples])
    run.check_weights(weights_of(samples, denominators=[torch.tensor(float(x)) for x in sums]), "attempt")
    run.check_weights(weights_of(samples, calculate_per_token_loss=True), "token")


exported = iter([Sample.from_dict(record) for record in native(sys.argv[2])])
check([[[next(exported) for _ in a.rows] for a in group] for group in run.groups])
own = {"dataclass": dataclass, "Sample": Sample, "Any": Any}
# The module of these classes imports SGLang.
load_defs(f"{SOURCE}/rollout/base_types.py", ["GenerateFnInput", "GenerateFnOutput"], own, keep_decorators=True)
sys.modules["miles.rollout.base_types"] = S(GenerateFnInput=own["GenerateFnInput"], GenerateFnOutput=own["GenerateFnOutput"])
from turnwright.trainers import miles as shim


async def played(sample, *_):
    """Stands in for a rollout over the service."""
    return run.attempts[sample.index].handed_over()


def asked(sample):
    return own["GenerateFnInput"](sample=sample, sampling_params={}, evaluation=False, state=S(args=args, aborted=False))


shim.play_sample, live = played, []
for number, group in enumerate(run.groups):
    samples = [Sample(group_index=number, index=a.place, prompt="0", metadata={}) for a in group]
    live.append([asyncio.run(shim.generate(asked(sample))).samples for sample in samples])
check(live)
run.done("miles", "export and live by attempt", "by token with --calculate-per-token-loss")

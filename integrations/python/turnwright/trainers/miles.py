"""miles: `--custom-generate-function-path turnwright.trainers.miles.generate`. The prompt is the task's index. miles
counts an attempt once by itself, if its rows carry one rollout id."""

from __future__ import annotations

import asyncio

from miles.rollout.base_types import GenerateFnInput, GenerateFnOutput
from miles.utils.types import Sample

from .slime_sample import check, fill, fill_first, play_sample


COLUMNS = ("routedExperts", "topLogprobs", "indexerTopK")


async def generate(input: GenerateFnInput) -> GenerateFnOutput:
    """Plays one rollout. Repeats it after an outage, so that no reward is null."""
    sample = input.sample
    await asyncio.to_thread(check, input.args, "miles", COLUMNS)
    attempt = await play_sample(sample, input.sampling_params, lambda: input.state.aborted, COLUMNS)
    if attempt is None:
        sample.status = Sample.Status.ABORTED
        return GenerateFnOutput(samples=sample)
    filled = fill_first(sample, attempt) if input.evaluation else fill(sample, attempt, "miles", remedies(input.args))
    return GenerateFnOutput(samples=filled)


def remedies(args) -> list[str]:
    """Returns the changes of settings with which each attempt weighs one, also if it has several rows.

    Source: radixark/miles 31f1ca961, miles/ray/rollout/train_data_conversion.py and rollout_data_conversion.py, and
    miles/rollout/inference_rollout/inference_rollout_train.py. Other backends, and independent replicas, split a step by
    rows; the last two settings fail on attempts with several rows.
    """
    needed = []
    if getattr(args, "train_backend", "megatron") != "megatron":
        needed.append("set --train-backend megatron")
    if not getattr(args, "use_dynamic_batch_size", False):
        needed.append("set --use-dynamic-batch-size")
    wrong = ("use_dynamic_global_batch_size", "indep_dp", "group_rm", "partial_rollout", "recompute_logprobs_via_prefill")
    return needed + [f"remove --{name.replace('_', '-')}" for name in wrong if getattr(args, name, False)]

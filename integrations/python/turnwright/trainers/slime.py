"""slime: `--custom-generate-function-path turnwright.trainers.slime.generate`. The prompt is the task's index."""

from __future__ import annotations

import asyncio
import sys

from slime.utils.types import Sample

from .slime_rewards import remedies
from .slime_sample import SLIME_COLUMNS, check, fill, fill_first, play_sample, require_sets


async def generate(args, sample: Sample, sampling_params, evaluation=False):
    """Plays one rollout. Repeats it after an outage, so that no reward is null."""
    await asyncio.to_thread(check, args)
    rollouts = sys.modules.get("slime.rollout.sglang_rollout")
    attempt = await play_sample(
        sample, sampling_params, lambda: rollouts is not None and rollouts.GenerateState(args).aborted,
        SLIME_COLUMNS)
    if attempt is None:
        sample.status = Sample.Status.ABORTED
        return sample
    require_sets(args, attempt)
    return fill_first(sample, attempt) if evaluation else fill(sample, attempt, "slime", remedies(args))

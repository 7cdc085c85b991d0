"""slime: `--custom-generate-function-path turnwright.trainers.slime.generate`. The prompt is the task's index."""

from __future__ import annotations

import asyncio
import sys

from slime.utils.types import Sample

from .play import connect, play_scored, sampling_of, split
from .slime_sample import check, fill


async def generate(args, sample: Sample, sampling_params, evaluation=False):
    """One rollout. An outage is played again, so that no reward is null."""
    check(args)
    client, told, rollouts = connect(), {}, sys.modules.get("slime.rollout.sglang_rollout")
    playing = asyncio.create_task(asyncio.to_thread(
        play_scored, client, task=int(sample.prompt), seed=sample.index or 0,
        sampling=sampling_of(sampling_params), told=told, split_name=sample.metadata.get("split", split())))
    while not (await asyncio.wait({playing}, timeout=0.2))[0]:
        # slime has enough for the step: what is under way goes back to its buffer, to be played anew.
        if rollouts is not None and rollouts.GenerateState(args).aborted and "batch" in told:
            told["is_over"] = True
            await asyncio.to_thread(client.cancel, told["batch"])
    if told.get("is_over") and playing.exception() is not None:
        sample.status = Sample.Status.ABORTED
        return sample
    return fill(args, sample, playing.result()[0])

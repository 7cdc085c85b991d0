"""slime: `--custom-generate-function-path turnwright.trainers.slime.generate`. The prompt is the task's index."""

from __future__ import annotations

import asyncio
import sys

from slime.utils.types import Sample

from .one_play import Play
from .play import connect, sampling_of
from .played import played
from .seeds import drawn_seed
from .slime_sample import check, fill
from .task_name import read_task


async def generate(args, sample: Sample, sampling_params, evaluation=False):
    """Plays one rollout. Repeats it after an outage, so that no reward is null."""
    check(args)
    rollouts = sys.modules.get("slime.rollout.sglang_rollout")
    split, task = read_task(sample.prompt, sample.metadata.get("split"))
    # slime's index counts the samples of all groups, so each has a different seed.
    seed = drawn_seed() if sample.index is None else sample.index
    play = Play(connect(), split=split, task=task, seed=seed, sampling=sampling_of(sampling_params))
    playing = asyncio.create_task(played(play))
    try:
        while not (await asyncio.wait({playing}, timeout=0.2))[0]:
            # slime has enough for the step. The running samples return to its buffer, to be played again.
            if rollouts is not None and rollouts.GenerateState(args).aborted and not play.is_over:
                await asyncio.to_thread(play.cancel)
    finally:
        playing.cancel()
    if play.is_over and playing.exception() is not None:
        sample.status = Sample.Status.ABORTED
        return sample
    return fill(args, sample, playing.result()[0])

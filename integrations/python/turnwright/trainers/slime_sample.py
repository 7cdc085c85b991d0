"""slime and miles: their `Sample`, filled from an attempt. miles descends from slime, and has almost the same fields."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import Any

from ..attempt import Attempt, Unfit
from .one_play import Play
from .play import connect, sampling_of
from .played import played
from .seeds import drawn_seed
from .several_rows import require
from .task_name import read_task


def check(args: Any) -> None:
    """Raises Unfit, before anything is played, for settings that need ids that are not recorded."""
    if getattr(args, "rollout_top_p", 1.0) != 1.0:
        raise Unfit("slime replays each token's nucleus with rollout_top_p, and it is not recorded: leave it at 1")


async def play_sample(sample: Any, sampling_params: Any, is_over: Callable[[], bool]) -> Attempt | None:
    """Plays one rollout of a sample's task. Returns None if the trainer has enough, so that `is_over()` is true."""
    split, task = read_task(sample.prompt, sample.metadata.get("split"))
    # The index counts the samples of all groups, so each has a different seed.
    seed = drawn_seed() if sample.index is None else sample.index
    play = Play(connect(), split=split, task=task, seed=seed, sampling=sampling_of(sampling_params))
    playing = asyncio.create_task(played(play))
    try:
        while not (await asyncio.wait({playing}, timeout=0.2))[0]:
            # The running samples return to the trainer's buffer, to be played again.
            if is_over() and not play.is_over:
                await asyncio.to_thread(play.cancel)
    finally:
        playing.cancel()
    return None if play.is_over and playing.exception() is not None else playing.result()[0]


def fill(sample: Any, attempt: Attempt, trainer: str, remedies: Sequence[str]) -> Any:
    """Returns a list of filled samples with one rollout id, a sample a row, if no remedy is needed for several rows.

    Otherwise it returns the filled sample of the only row, or raises Unfit with the remedies. All groups of a step must
    have one shape, because the trainers flatten a step by the shape of its first sample.
    """
    if remedies:
        require(attempt, trainer, remedies)
        return fill_first(sample, attempt)
    filled = [_of_row(sample, attempt, row) for row in attempt.trained_rows]
    for own in filled:
        own.rollout_id = sample.index if sample.rollout_id is None else sample.rollout_id
    return filled


def fill_first(sample: Any, attempt: Attempt) -> Any:
    """Returns the filled sample of the first row. An evaluation takes this, because it counts rewards by the row."""
    return _of_row(sample, attempt, attempt.trained_rows[0])


def _of_row(sample: Any, attempt: Attempt, row: dict[str, Any]) -> Any:
    own, start, about = copy.copy(sample), row["promptLength"], attempt.about
    own.tokens, own.response_length = row["tokenIds"], len(row["tokenIds"]) - start
    own.loss_mask, own.rollout_log_probs = row["lossMask"][start:], row["logprobs"][start:]
    own.reward, own.status = attempt.reward, sample.Status(attempt.outcome)
    own.weight_versions = [row["policyVersions"][t["end"] - 1] for t in row["turns"] if t["end"] > t["start"]]
    own.non_generation_time = about.get("environmentMs", 0) / 1000
    if hasattr(sample, "session_id"):  # slime's only
        own.session_id = attempt.rollout_id
    own.prefix_cache_info = sample.PrefixCacheInfo(
        cached_tokens=about.get("cachedTokenCount", 0), total_prompt_tokens=about.get("promptTokenCount", 0))
    own.metadata = {**sample.metadata, **row["metadata"], "rollout": attempt.rollout_id, "task": row["taskId"],
                    "source_name": about.get("environment"), "reward_details": about.get("rewardDetails"),
                    "user_usage": about.get("userUsage"), "stop_reason": attempt.stop_reason}
    return own

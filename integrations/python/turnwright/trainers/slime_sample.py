"""slime and miles: their `Sample`, filled from an attempt. miles descends from slime, and has almost the same fields."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from typing import Any

from ..attempt import Attempt, Group, Unfit
from ..client import Client
from .column_forms import (
    columns_of, computed_row, expert_type, ragged, token_array, top_lists, with_columns)
from .one_play import Play
from .play import connect, sampling_of
from .played import played
from .seeds import drawn_seed
from .several_rows import require
from .task_name import read_task

SLIME_COLUMNS = ("routedExperts", "keptTokens")
SETTINGS = {"keptTokens": ("rollout_top_p", "leave it at 1, or start the service with keptTokens"),
            "routedExperts": ("use_rollout_routing_replay", "remove it, or start the service with routedExperts"),
            "indexerTopK": ("use_rollout_indexer_replay", "remove it, or start the service with indexerTopK")}


def check(args: Any, trainer: str = "slime", columns: Sequence[str] = SLIME_COLUMNS) -> None:
    """Raises Unfit, before anything is played, for settings that need columns that the service does not record.

    `columns` are the side columns that the trainer takes.
    """
    replays = {"keptTokens": getattr(args, "rollout_top_p", 1.0) != 1.0,
               "routedExperts": getattr(args, "use_rollout_routing_replay", False),
               "indexerTopK": getattr(args, "use_rollout_indexer_replay", False)}
    needed = [name for name in SETTINGS if replays[name] and name in columns]
    if not needed:
        return
    specs = connect().column_specs()
    for name in needed:
        setting, remedy = SETTINGS[name]
        if name not in specs:
            raise Unfit(f"{trainer} replays {name} with {setting}, and the service does not record them: {remedy}")


def require_sets(args: Any, attempt: Attempt) -> None:
    """Raises Unfit if the attempt has kept tokens, and slime would not read them."""
    if getattr(args, "rollout_top_p", 1.0) == 1.0 and attempt.columns is not None and "keptTokens" in attempt.columns.specs:
        raise Unfit(f"The logprobs of {attempt.rollout_id} are over its kept tokens, and slime ignores these with "
                    "rollout_top_p=1: set --rollout-top-p to the service's")


async def play_sample(sample: Any, sampling_params: Any, is_over: Callable[[], bool],
                      columns: Sequence[str]) -> Attempt | None:
    """Plays one rollout of a sample's task. Returns None if the trainer has enough, so that `is_over()` is true."""
    split, task = read_task(sample.prompt, sample.metadata.get("split"))
    # The index counts the samples of all groups, so each has a different seed.
    seed = drawn_seed() if sample.index is None else sample.index
    play = Play(connect(), split=split, task=task, seed=seed, sampling=sampling_of(sampling_params),
                columns=columns)
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
    """Returns the filled sample of the first row. Used in evaluations, because they count rewards by the row."""
    return _of_row(sample, attempt, attempt.trained_rows[0])


def with_sets(args: Any, client: Client, group: Group) -> list[Attempt]:
    """Returns the attempts of a group with their columns, before the group is acknowledged. See `require_sets()`."""
    attempts = [with_columns(client, attempt, SLIME_COLUMNS) for attempt in group.attempts]
    for attempt in attempts:
        require_sets(args, attempt)
    return attempts


def _of_row(sample: Any, attempt: Attempt, row: dict[str, Any]) -> Any:
    found, row = columns_of(attempt, row), computed_row(attempt, row)
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
    # slime's field for the sets is its only one that miles does not have.
    add = _add_slime if hasattr(sample, "rollout_top_p_token_ids") else _add_miles
    add(own, attempt, found, start)
    return own


def _add_slime(own: Any, attempt: Attempt, found: dict[str, Any], start: int) -> None:
    if not found:
        return
    import torch

    if "routedExperts" in found:
        kind = expert_type(attempt, ("uint8",))
        own.rollout_routed_experts = torch.tensor(
            token_array(found["routedExperts"], kind, len(own.tokens) - 1))
    if "keptTokens" in found:
        ids, offsets = ragged(found["keptTokens"], start, len(own.tokens))
        own.rollout_top_p_token_ids, own.rollout_top_p_token_offsets = torch.from_numpy(ids), torch.from_numpy(offsets)


def _add_miles(own: Any, attempt: Attempt, found: dict[str, Any], start: int) -> None:
    rows = len(own.tokens) - 1
    if "routedExperts" in found:
        own.rollout_routed_experts = token_array(found["routedExperts"], "int32", rows)
    if "indexerTopK" in found:
        own.rollout_indexer_topk = token_array(found["indexerTopK"], "int32", rows)
    if "topLogprobs" in found:
        own.metadata["opd_student_top_logprobs"] = top_lists(found["topLogprobs"], start, len(own.tokens))

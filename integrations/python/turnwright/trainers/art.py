"""ART: attempts as its trajectories. A trajectory is an attempt: its first row, and the others as additional histories.
ART counts the trajectories of a group, and gives each the weight 1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from art import Trajectory, TrajectoryGroup
from art.trajectories import LegacyHistory
from openai.types.chat.chat_completion import Choice

from ..attempt import Attempt
from ..rows import Row
from .column_forms import columns_of
from .one_play import Play
from .play import connect
from .played import all_played
from .seeds import drawn_seed
from .task_name import read_task


async def play_groups(tasks: Iterable[int | str], samples: int = 8, temperature: float = 1.0) -> list[TrajectoryGroup]:
    """Plays groups concurrently. The service limits the number of running attempts. A task is an index, or `test/4`."""
    sampling = {"temperature": temperature}
    plays = [Play(connect(), split=split, task=task, samples=samples, seed=drawn_seed(), sampling=sampling,
                  columns=("routedExperts",))
             for split, task in map(read_task, tasks)]
    return [TrajectoryGroup([to_trajectory(attempt) for attempt in group]) for group in await all_played(plays)]


def to_trajectory(attempt: Attempt) -> Trajectory:
    """Returns an attempt with the ids of each policy call. ART takes ids, mask and logprobs from these calls."""
    first, *others = [_history(attempt, row) for row in attempt.trained_rows]
    versions = {version for row in attempt.trained_rows for version in row["policyVersions"] if version.isdecimal()}
    numbers = [int(version) for version in versions] or [None]
    return Trajectory(
        messages_and_choices=first, additional_histories=[LegacyHistory(messages_and_choices=one) for one in others],
        reward=float(attempt.reward), initial_policy_version=min(numbers), final_policy_version=max(numbers),
        metrics={"rows": len(others) + 1, "sampled_tokens": attempt.token_count, **attempt.component_metrics},
        metadata={"rollout": attempt.rollout_id, "stop_reason": attempt.stop_reason})


def _history(attempt: Attempt, row: Row) -> list:
    """Returns a row's calls. ART needs a message before each, and reads no text where a call has ids."""
    routes = columns_of(attempt, row).get("routedExperts")
    return [part for turn in row["turns"] if turn["end"] > turn["start"]
            for part in ({"role": "user", "content": ""}, _choice(row, turn["start"], turn["end"], routes))]


def _choice(row: Row, start: int, end: int, routes: Any) -> Choice:
    ids, logprobs = row["tokenIds"], row["logprobs"]
    content = [{"token": f"token_id:{ids[at]}", "logprob": logprobs[at], "top_logprobs": []} for at in range(start, end)]
    routing = {} if routes is None else {"art_moe_routing": {
        "prompt_token_ids": ids[:start], "completion_token_ids": ids[start:end], "routed_experts": routes[:end - 1]}}
    return Choice.model_validate({
        **routing,
        "index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ""},
        "logprobs": {"content": content, "refusal": None}, "prompt_token_ids": ids[:start], "token_ids": ids[start:end]})

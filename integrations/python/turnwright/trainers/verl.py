"""verl: an agent loop, by `rollout.agent.default_agent_loop=turnwright` and a file at `agent_loop_config_path` that
names this class. The dataset's `extra_info.index` is the task's index. Set rollout correction to bypass mode, so that
the loss uses the recorded logprobs."""

from __future__ import annotations

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from ..attempt import Attempt, Response, sampled_versions
from .play import connect, sampling_of
from .played import played_once
from .seeds import drawn_seed
from .task_name import read_task


def fit(row: Response, limit: int) -> Response:
    """Cuts the response to verl's limit, at a sampled token."""
    mask = row.mask[:limit]
    end = len(mask) - mask[::-1].index(1) if 1 in mask else 0
    return Response(row.prompt_ids, row.response_ids[:end], mask[:end], row.logprobs[:end], row.versions[:end])


def to_output(attempt: Attempt, limit: int) -> AgentLoopOutput:
    whole = attempt.response()
    row = fit(whole, limit)
    versions = sampled_versions(row.versions, row.mask)
    is_cut = len(row.response_ids) < len(whole.response_ids)
    return AgentLoopOutput(
        prompt_ids=row.prompt_ids, response_ids=row.response_ids, response_mask=row.mask,
        response_logprobs=row.logprobs, reward_score=attempt.reward,
        num_turns=2 * len(attempt.rows[0]["turns"]), metrics=AgentLoopMetrics(),
        extra_fields={"rollout_id": attempt.rollout_id, "status": "truncated" if is_cut else attempt.outcome,
                      "min_global_steps": min(versions), "max_global_steps": max(versions)})


@register("turnwright")
class TurnwrightAgentLoop(AgentLoopBase):
    """Plays one rollout a call, at the task of the dataset's row."""

    async def run(self, sampling_params, **kwargs) -> AgentLoopOutput:
        about = kwargs["extra_info"]
        split, task = read_task(about["index"], about.get("split"))
        attempt = await played_once(connect(), split=split, task=task, seed=drawn_seed(), sampling=sampling_of(sampling_params))
        return to_output(attempt, self.rollout_config.response_length)

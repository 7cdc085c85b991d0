"""verl: the rows of an attempt as outputs of an agent loop."""

from __future__ import annotations

from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from ..attempt import Attempt, Response, Unfit, sampled_versions
from ..rows import Row
from .column_forms import whole_routes


def fit(row: Response, limit: int) -> Response:
    """Cuts the response to verl's limit, at a sampled token."""
    mask = row.mask[:limit]
    end = len(mask) - mask[::-1].index(1) if 1 in mask else 0
    return Response(row.prompt_ids, row.response_ids[:end], mask[:end], row.logprobs[:end], row.versions[:end])


def to_output(attempt: Attempt, limit: int, with_components: bool = False) -> AgentLoopOutput | list[AgentLoopOutput]:
    """Returns the attempt's output, or a list with an output for each row. Leaves out rows without a trained token
    before the
    limit: as an attempt's last row, such a row makes verl forget the attempt."""
    cut = [(fit(row, limit), row, of) for row, of in zip(attempt.responses(), attempt.trained_rows)]
    kept = [(row, of) for row, _, of in cut if row.response_ids]
    if not kept:
        raise Unfit(f"{attempt.rollout_id} has no sampled token within response_length={limit}: raise it")
    is_cut = any(len(row.response_ids) < len(whole.response_ids) for row, whole, _ in cut)
    status, several = "truncated" if is_cut else attempt.outcome, len(kept) > 1
    # verl copies this field from an attempt's last output to the others.
    info = {"reward_extra_info": attempt.components} if several or (with_components and attempt.components) else {}
    outputs = [_output(attempt, row, of, {"status": status, **info}) for row, of in kept]
    return outputs if several else outputs[0]


def _output(attempt: Attempt, row: Response, of: Row, fields: dict[str, Any]) -> AgentLoopOutput:
    versions = sampled_versions(row.versions, row.mask)
    more = {"rollout_id": attempt.rollout_id, "min_global_steps": min(versions), "max_global_steps": max(versions)}
    routes = whole_routes(attempt, of, len(row.ids))
    columns = {} if routes is None else {"routed_experts": routes}
    return AgentLoopOutput(
        prompt_ids=row.prompt_ids, response_ids=row.response_ids, response_mask=row.mask, response_logprobs=row.logprobs,
        reward_score=attempt.reward, num_turns=2 * len(of["turns"]), metrics=AgentLoopMetrics(),
        extra_fields={**fields, **more}, **columns)

"""AReaL: a workflow. `data["task_index"]` names the task. The trainer shifts mask and logprobs itself. A row
ends with a sampled token, because AReaL would lose its reward otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from areal.api.workflow_api import RolloutWorkflow

from ..attempt import Response, sampled_versions
from .play import connect
from .played import played_once
from .seeds import drawn_seed
from .several_rows import require
from .task_name import read_task

GROUP = "turnwright.trainers.areal_group.TurnwrightGroupWorkflow"


def to_tensors(rows: Sequence[tuple[Response, float]]) -> dict[str, torch.Tensor]:
    """Returns rows with their rewards as AReaL's batch, padded to the longest."""
    width = max(len(row.ids) for row, _ in rows)

    def whole(values: list[list], fill, kind) -> torch.Tensor:
        return torch.tensor([own + [fill] * (width - len(own)) for own in values], dtype=kind)

    return {"input_ids": whole([row.ids for row, _ in rows], 0, torch.int32),
            "loss_mask": whole([row.over_whole(row.mask, 0) for row, _ in rows], 0, torch.int32),
            "logprobs": whole([row.over_whole(row.logprobs, 0.0) for row, _ in rows], 0.0, torch.float32),
            "versions": whole([row.over_whole(_versions(row), -1) for row, _ in rows], -1, torch.int32),
            "attention_mask": whole([[True] * len(row.ids) for row, _ in rows], False, torch.bool),
            "rewards": torch.tensor([float(reward) for _, reward in rows])}


def _versions(row: Response) -> list[int]:
    sampled = iter(sampled_versions(row.versions, row.mask))
    return [next(sampled) if bit == 1 else -1 for bit in row.mask]


class TurnwrightWorkflow(RolloutWorkflow):
    """Plays one rollout for each episode. Raises an error with the reason if the rollout cannot be trained on, because
    AReaL logs errors and not a result of None.
    """

    async def arun_episode(self, engine, data):
        split, task = read_task(data["task_index"], data.get("split"))
        attempt = await played_once(connect(), split=split, task=task, seed=drawn_seed())
        require(attempt, "AReaL", [f"use the workflow {GROUP}"])
        return to_tensors([(attempt.response(), attempt.reward)])

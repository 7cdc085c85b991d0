"""AReaL: a workflow. `data["task_index"]` names the task. The trainer shifts mask and logprobs itself. A row
ends with a sampled token, because AReaL would lose its reward otherwise."""

from __future__ import annotations

import torch
from areal.api.workflow_api import RolloutWorkflow

from ..attempt import Attempt, sampled_versions
from .play import connect
from .played import played_once
from .seeds import drawn_seed
from .task_name import read_task


def to_tensors(attempt: Attempt) -> dict[str, torch.Tensor]:
    row = attempt.response()
    sampled = iter(sampled_versions(row.versions, row.mask))
    versions = [next(sampled) if bit == 1 else -1 for bit in row.mask]

    def whole(values: list, fill, kind) -> torch.Tensor:
        return torch.tensor([row.over_whole(values, fill)], dtype=kind)

    return {"input_ids": torch.tensor([row.ids], dtype=torch.int32), "loss_mask": whole(row.mask, 0, torch.int32),
            "logprobs": whole(row.logprobs, 0.0, torch.float32), "versions": whole(versions, -1, torch.int32),
            "attention_mask": torch.ones(1, len(row.ids), dtype=torch.bool),
            "rewards": torch.tensor([float(attempt.reward)])}


class TurnwrightWorkflow(RolloutWorkflow):
    """Plays one rollout an episode. If it cannot be trained on, it raises the reason, which AReaL logs. AReaL would
    log nothing for None."""

    async def arun_episode(self, engine, data):
        split, task = read_task(data["task_index"], data.get("split"))
        return to_tensors(await played_once(connect(), split=split, task=task, seed=drawn_seed()))

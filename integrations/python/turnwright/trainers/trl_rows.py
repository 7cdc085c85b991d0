"""TRL's GRPOTrainer: batches with all rows of the attempts. TRL scores one row of each attempt. Then the other rows
are added to the batch, each with its attempt's advantage.
"""

from __future__ import annotations

from typing import Any, Sequence

import torch
from trl.trainer.utils import pad

from ..attempt import Response
from .trl_groups import mode_of


def spread(attempts: Sequence[Sequence[Response]], size: int) -> list[tuple[Response, int]]:
    """Returns `size` rows, each with the position of its attempt: the rows of the attempts, followed by short masked
    rows.
    """
    rows = [(row, place) for place, own in enumerate(attempts) for row in own]
    first = rows[0][0]
    filler = Response(first.prompt_ids[:1], first.response_ids[:1], [0], [0.0], first.versions[:1])
    return rows + [(filler, 0)] * (size - len(rows))


def with_all_rows(trainer: Any, out: dict[str, Any]) -> dict[str, Any]:
    """Returns TRL's batch with all rows, or unchanged if no attempt of any rank has several rows. All ranks get the same
    number of rows, a multiple of `steps_per_generation`: TRL loses a remainder, and gathers by the row."""
    own, gather = trainer.rows_by_attempt, trainer.accelerator.gather
    if len(own) != len(out["advantages"]):
        raise RuntimeError(f"TRL scored {len(out['advantages'])} attempts, and {len(own)} were played: "
                           "use rollout_func=make_rollout_func()")
    device = out["advantages"].device
    most = int(gather(torch.tensor([sum(map(len, own))], device=device)).max())
    if most == len(own):
        return out
    steps = trainer.args.steps_per_generation if mode_of(trainer) == "train" else 1
    rows = spread(own, -(-most // steps) * steps)

    def padded(values: list[list], fill: Any, kind: torch.dtype, side: str = "right") -> torch.Tensor:
        tensors = [torch.tensor(one, dtype=kind) for one in values]
        return pad(tensors, fill, side, pad_to_multiple_of=trainer.pad_to_multiple_of).to(device)

    prompts, completions = [row.prompt_ids for row, _ in rows], [row.response_ids for row, _ in rows]
    logprobs, blank = padded([row.logprobs for row, _ in rows], 0.0, torch.float32), trainer.processing_class.pad_token_id
    mask = padded([row.mask for row, _ in rows], 1, torch.long)
    is_real = padded([[1] * len(one) for one in completions], 0, torch.long)
    return {**out, "prompt_ids": padded(prompts, blank, torch.long, "left"),
            "prompt_mask": padded([[1] * len(one) for one in prompts], 0, torch.long, "left"),
            "completion_ids": padded(completions, blank, torch.long), "completion_mask": is_real, "tool_mask": mask,
            "advantages": out["advantages"][torch.tensor([place for _, place in rows], device=device)],
            "old_per_token_logps": logprobs, "sampling_per_token_logps": logprobs,
            "num_items_in_batch": gather((mask * is_real).sum()).sum()}

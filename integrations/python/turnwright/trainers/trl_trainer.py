"""TRL: a GRPOTrainer that trains on recorded logprobs, and on all rows of an attempt."""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOTrainer

from ..attempt import Response
from .trl_rows import with_all_rows


class RecordedGRPOTrainer(GRPOTrainer):
    """Uses the recorded logprobs as the old policy's in the loss, which TRL does only with use_vllm. Trains all rows of an
    attempt, each with the attempt's advantage."""

    rows_by_attempt: list[list[Response]] = []

    def _generate_and_score_completions(self, inputs):
        out = super()._generate_and_score_completions(inputs)
        recorded = out.get("sampling_per_token_logps")
        if recorded is None:
            raise RuntimeError("This version of TRL does not pass on the logprobs of a rollout_func")
        out["old_per_token_logps"] = torch.as_tensor(recorded)
        return with_all_rows(self, out)


def remedies(trainer: Any) -> list[str]:
    """Returns the changes of settings with which each attempt weighs one, also if it has several rows.

    Source: TRL 1.16.0, trl/trainer/grpo_trainer.py. TRL computes the values of the last three settings for the scored
    rows only.
    """
    needed = [] if isinstance(trainer, RecordedGRPOTrainer) else ["train with RecordedGRPOTrainer"]
    if trainer.loss_type not in ("dapo", "cispo"):
        needed.append('set loss_type="dapo"')
    if trainer.beta != 0.0:
        needed.append("set beta=0.0")
    if trainer.use_vllm and trainer.vllm_importance_sampling_correction:
        needed.append("set vllm_importance_sampling_correction=False")
    return needed + (["set mask_truncated_completions=False"] if trainer.mask_truncated_completions else [])

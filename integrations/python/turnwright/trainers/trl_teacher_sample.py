"""Exported rows with a teacher's columns as the samples of TRL's AsyncDistillationTrainer."""

from __future__ import annotations

from typing import Any

import numpy as np
from trl.experimental.async_distillation.async_rollout_worker import RolloutSample


def to_sample(record: dict[str, Any], prompt_id: int, model_version: int) -> RolloutSample:
    """Returns a record of `turnwright export --to trl --teacher NAME --teacher-top` as a sample. TRL counts epochs by `prompt_id`."""
    own = record["sample"]
    return RolloutSample(
        prompt=[], completion=[], input_ids=np.array(own["input_ids"]), completion_mask=np.array(own["completion_mask"]),
        teacher_topk_ids=own["teacher_topk_ids"].astype(np.int64), teacher_topk_logprobs=own["teacher_topk_logprobs"],
        model_version=model_version, metrics={"reward": float(record["reward"])}, teacher_id=own["teacher_id"], prompt_id=prompt_id)

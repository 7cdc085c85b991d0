"""TRL's AsyncGRPOTrainer: an attempt as its sample."""

from __future__ import annotations

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from ..attempt import Attempt, sampled_versions


def to_sample(attempt: Attempt, advantage: float, group: int) -> RolloutSample:
    """Mask and logprobs over the whole row, unshifted."""
    row = attempt.response()
    mask = np.array(row.over_whole(row.mask, 0))
    return RolloutSample(
        prompt=[], completion=[], input_ids=np.array(row.ids), completion_mask=mask, group_id=group,
        old_log_probs=np.array(row.over_whole(row.logprobs, 0.0), dtype=np.float32), advantage=advantage,
        model_version=min(sampled_versions(row.versions, row.mask)), metrics={"reward": float(attempt.reward)})

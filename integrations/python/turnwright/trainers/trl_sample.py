"""TRL's AsyncGRPOTrainer: an attempt as its samples."""

from __future__ import annotations

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from ..attempt import Attempt, sampled_versions


def to_samples(attempt: Attempt, advantage: float, group: int) -> list[RolloutSample]:
    """Returns a sample a row, each with the attempt's advantage. Mask and logprobs are over the whole row, unshifted. The
    version is the attempt's oldest, so that its rows get stale together."""
    rows = attempt.responses()
    metrics = {"reward": float(attempt.reward), "rows": float(len(rows)), **attempt.component_metrics}
    oldest = min(version for row in rows for version in sampled_versions(row.versions, row.mask))
    return [RolloutSample(
        prompt=[], completion=[], input_ids=np.array(row.ids), completion_mask=np.array(row.over_whole(row.mask, 0)),
        group_id=group, old_log_probs=np.array(row.over_whole(row.logprobs, 0.0), dtype=np.float32), advantage=advantage,
        model_version=oldest, metrics=dict(metrics)) for row in rows]

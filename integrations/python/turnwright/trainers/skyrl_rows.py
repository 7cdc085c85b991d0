"""SkyRL: attempts as its output, and the settings with which the rows of an attempt weigh as one."""

from __future__ import annotations

from collections.abc import Sequence

from skyrl.train.generators.base import GeneratorOutput, TrajectoryID

from ..attempt import Attempt
from .several_rows import require
from .skyrl_columns import columns_of_rows

STOP_REASONS = {"completed": "stop", "truncated": "length"}


def to_output(attempts: Sequence[Attempt], ids: Sequence[TrajectoryID] | None, cfg) -> GeneratorOutput:
    """Returns all rows, each with its attempt's whole reward. In step-wise mode each row has its attempt's id, and is
    marked if it is the attempt's last."""
    needed = [] if all(attempt.row_count == 1 for attempt in attempts) else remedies(cfg)
    for attempt in attempts:
        require(attempt, "SkyRL", needed)
    rows = [(place, row) for place, attempt in enumerate(attempts) for row in attempt.responses()]
    places = [place for place, _ in rows]
    output = GeneratorOutput(
        prompt_token_ids=[row.prompt_ids for _, row in rows], response_ids=[row.response_ids for _, row in rows],
        rewards=[float(attempts[place].reward) for place in places], loss_masks=[row.mask for _, row in rows],
        stop_reasons=[STOP_REASONS[attempts[place].outcome] for place in places], rollout_metrics={},
        rollout_logprobs=[row.logprobs for _, row in rows],
        trajectory_ids=None if ids is None else [ids[place] for place in places])
    output.update(columns_of_rows(attempts))
    if cfg.generator.step_wise_trajectories:
        output["is_last_step"] = [place != after for place, after in zip(places, [*places[1:], None])]
    return output


def remedies(cfg) -> list[str]:
    """Returns the changes of settings with which each attempt weighs one. SkyRL itself refuses other estimators.

    Source: SkyRL 0.4.0, train/trainer.py and train/utils/trainer_utils.py (`handle_dynamic_sampling` counts rows).
    """
    algorithm, needed = cfg.trainer.algorithm, []
    if not cfg.generator.step_wise_trajectories:
        needed.append("set generator.step_wise_trajectories=true")
    if algorithm.loss_reduction == "sequence_mean":
        needed.append("set trainer.algorithm.loss_reduction=token_mean")
    if algorithm.dynamic_sampling.type is not None:
        needed.append("set trainer.algorithm.dynamic_sampling.type=null")
    return needed

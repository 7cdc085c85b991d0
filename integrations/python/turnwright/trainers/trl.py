"""TRL: a `rollout_func` for GRPOTrainer, and a trainer with a loss that uses the recorded logprobs. A prompt is a
task's index, or its split and index such as `test/4`."""

from __future__ import annotations

from typing import Any, Callable

from trl import GRPOTrainer

from .play import connect, play_all
from .several_rows import require
from .take_over import Versions
from .trl_groups import GroupSeeds, columns_of, plays_of
from .trl_ranks import publishes, share
from .trl_trainer import RecordedGRPOTrainer, remedies


__all__ = ["RecordedGRPOTrainer", "env_reward", "make_rollout_func"]


def make_rollout_func(publish: Callable[[Any], str] | None = None):
    """Returns a `rollout_func`. `publish(model)` writes the weights to a folder, and returns it. It is called once a step,
    on rank 0. With sharded weights (FSDP, ZeRO 3) it is called on every rank: gather there, and write on rank 0 only."""
    versions, seeds, published = Versions(), GroupSeeds(), None

    def rollout(prompts: list, trainer: GRPOTrainer) -> dict[str, list]:
        nonlocal published
        step, folder, problem = trainer.state.global_step, None, None
        is_new = publish is not None and step != published
        try:
            if is_new and publishes(trainer.accelerator):
                folder = publish(trainer.accelerator.unwrap_model(trainer.model))
        except Exception as error:
            problem = error

        def play(of_all_ranks: list) -> list:
            client = connect()
            if is_new:
                versions.announce(client, step, folder)
            played = [one for own in play_all(plays_of(client, trainer, of_all_ranks, seeds)) for one in own]
            for attempt in played:
                if attempt.row_count > 1:
                    require(attempt, "TRL", remedies(trainer))
            return [(attempt.responses(), attempt.reward) for attempt in played]
        attempts = share(trainer.accelerator, prompts, play, problem)
        published, trainer.rows_by_attempt = step, [rows for rows, _ in attempts]
        return columns_of([(rows[0], reward) for rows, reward in attempts])

    return rollout


def env_reward(completions, env_reward, **_) -> list[float]:
    """Returns the environment's rewards. Pass it as a reward function of TRL."""
    return env_reward

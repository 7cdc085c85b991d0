"""TRL: a `rollout_func` for GRPOTrainer, and a trainer with a loss that uses the recorded logprobs. A prompt is a
task's index, or its split and index such as `test/4`."""

from __future__ import annotations

from typing import Any, Callable

import torch
from trl import GRPOTrainer

from .play import connect, play_all
from .take_over import Versions
from .trl_groups import GroupSeeds, columns_of, plays_of
from .trl_ranks import publishes, share


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
            played = play_all(plays_of(client, trainer, of_all_ranks, seeds))
            return [(attempt.response(), attempt.reward) for own in played for attempt in own]
        rows = share(trainer.accelerator, prompts, play, problem)
        published = step
        return columns_of(rows)

    return rollout


def env_reward(completions, env_reward, **_) -> list[float]:
    """Returns the environment's rewards. Pass it as a reward function of TRL."""
    return env_reward


class RecordedGRPOTrainer(GRPOTrainer):
    """Uses the recorded logprobs as the old policy's in the loss, which TRL does only with use_vllm."""

    def _generate_and_score_completions(self, inputs):
        out = super()._generate_and_score_completions(inputs)
        recorded = out.get("sampling_per_token_logps")
        if recorded is None:
            raise RuntimeError("This version of TRL does not pass on the logprobs of a rollout_func")
        out["old_per_token_logps"] = torch.as_tensor(recorded)
        return out

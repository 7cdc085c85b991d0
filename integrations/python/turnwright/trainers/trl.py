"""TRL: a `rollout_func` for GRPOTrainer, and a trainer in whose loss the recorded logprobs count. A
prompt is a task's index."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Callable

import torch
from trl import GRPOTrainer

from .play import connect, play_scored
from .take_over import announce


def make_rollout_func(publish: Callable[[Any], str] | None = None):
    """`publish(model)` writes the weights where the engine reads them, and gives back the folder."""
    client = connect()

    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list]:
        step = trainer.state.global_step
        if publish is not None:
            announce(client, step, publish(trainer.accelerator.unwrap_model(trainer.model)))
        attempts = []
        for task, group in groupby(prompts):
            count = len(list(group))
            attempts += play_scored(client, task=int(task), samples=count,
                                    seed=1000 * step + len(attempts), sampling={"temperature": trainer.temperature})
        rows = [attempt.response() for attempt in attempts]
        return {"prompt_ids": [row.prompt_ids for row in rows], "completion_ids": [row.response_ids for row in rows],
                "logprobs": [row.logprobs for row in rows], "env_mask": [row.mask for row in rows],
                "env_reward": [attempt.reward for attempt in attempts]}

    return rollout


def env_reward(completions, env_reward, **_) -> list[float]:
    """The environment's reward, as a reward function of TRL."""
    return env_reward


class RecordedGRPOTrainer(GRPOTrainer):
    """TRL uses a rollout_func's logprobs in its loss only with use_vllm; here they are the old policy's."""

    def _generate_and_score_completions(self, inputs):
        out = super()._generate_and_score_completions(inputs)
        recorded = out.get("sampling_per_token_logps")
        if recorded is None:
            raise RuntimeError("This version of TRL does not hand on the logprobs of a rollout_func")
        out["old_per_token_logps"] = torch.as_tensor(recorded)
        return out

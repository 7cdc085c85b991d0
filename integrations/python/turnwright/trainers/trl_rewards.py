"""TRL: reward functions that read the environment's reward and its components from the columns of a rollout_func."""

from __future__ import annotations

from typing import Callable


def env_component(name: str) -> Callable[..., list[float | None]]:
    """Returns a reward function of TRL for a component of the environment's reward. Pass the components in place of
    `env_reward`, with their weights as `reward_weights`. For an attempt without the component the value is None, which
    TRL ignores."""
    def component(completions, **columns) -> list[float | None]:
        return columns.get(f"env_reward_{name}") or [None] * len(completions)
    component.__name__ = f"env_{name}"
    return component


def env_reward(completions, env_reward, **_) -> list[float]:
    """Returns the environment's rewards. Pass it as a reward function of TRL."""
    return env_reward

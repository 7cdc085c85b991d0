"""Episodes of environments with gymnasium's interface."""

from __future__ import annotations

from typing import Any

from ..environments.text import Shown, TextEpisode


class GymEpisode(TextEpisode):
    """Steps an environment by texts. Its reward is the sum of the rewards of the steps."""

    def __init__(self, env: Any, first: str) -> None:
        self.env = env
        self.first = first
        self.reward = 0.0

    def step(self, text: str) -> tuple[Shown, bool]:
        shown, reward, terminated, truncated, _ = self.env.step(text)
        self.reward += float(reward)
        return shown, bool(terminated or truncated)

    def score(self) -> Any:
        return {"reward": self.reward}

    def close(self) -> None:
        self.env.close()

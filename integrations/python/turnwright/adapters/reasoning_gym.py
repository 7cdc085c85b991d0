"""Puzzles of reasoning-gym: one question, one answer, and a score of the answer."""

from __future__ import annotations

from typing import Any, Sequence

from ..environments.text import Shown, TextEnvironment, TextEpisode
from .explained import explained, unknown_name


class ReasoningGym(TextEnvironment):
    """A generator of reasoning-gym, such as `leg_counting`. Further arguments are those of its configuration.

    Args:
        size: Number of tasks of the split `train`.
        test_size: Number of tasks of the split `test`. They follow the tasks of `train`.
        seed: The data set's seed.
    """

    source = "reasoning-gym"
    packages: Sequence[str] = ("reasoning-gym",)
    repeatable = True

    def __init__(self, name: str, *, size: int = 100, test_size: int = 20, seed: int = 42, **config: Any) -> None:
        import reasoning_gym
        from reasoning_gym.factory import DATASETS

        if name not in DATASETS:
            raise unknown_name("reasoning-gym", name, DATASETS)
        self.name = f"reasoning-gym-{name}"
        self.size = size
        total = size + test_size
        self.data = explained(self.name, lambda: reasoning_gym.create_dataset(name, size=total, seed=seed, **config))

    def tasks(self) -> dict[str, list[dict[str, Any]]]:
        tasks = [{"instruction": self.data[index]["question"], "index": index} for index in range(len(self.data))]
        return {"train": tasks[: self.size], **({"test": tasks[self.size :]} if len(tasks) > self.size else {})}

    def open(self, task: Any, seed: int) -> TextEpisode:
        return Puzzle(self.data, task)


class Puzzle(TextEpisode):
    """A question. If the reply has an answer between `<answer>` tags, only that answer is scored, otherwise the whole
    reply.
    """

    def __init__(self, data: Any, task: Any) -> None:
        self.data, self.entry, self.first = data, data[task["index"]], task["instruction"]
        self.reward = 0.0

    def step(self, text: str) -> tuple[Shown, bool]:
        from reasoning_gym.utils import extract_answer

        answer = extract_answer(text)
        self.reward = float(self.data.score_answer(text if answer is None else answer, self.entry))
        return None, True

    def score(self) -> Any:
        return {"reward": self.reward}

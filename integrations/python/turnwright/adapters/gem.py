"""Environments of gem-llm: games, and questions with data that it fetches."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..environments.text import TextEnvironment, TextEpisode
from .explained import explained, unknown_name
from .gym_episode import GymEpisode
from .seeds import seeded_tasks


class Gem(TextEnvironment):
    """An environment of gem, such as `game:GuessTheNumber-v0-easy`. Further arguments are those of `gem.make()`.

    Args:
        size: Number of tasks of the split `train`.
        test_size: Number of tasks of the split `test`.
        seed: The seed of the first task.
    """

    source = "gem-llm"
    packages: Sequence[str] = ("gem-llm",)
    repeatable = True
    draws_globally = True

    def __init__(self, name: str, *, size: int = 100, test_size: int = 20, seed: int = 1, **options: Any) -> None:
        import gem
        from gem.envs.registration import ENV_REGISTRY

        if name not in ENV_REGISTRY:
            raise unknown_name("gem", name, ENV_REGISTRY)
        self.name = f"gem-{name}".replace(":", "-")
        self.make: Callable[..., Any] = lambda: gem.make(name, **options)
        self.all = seeded_tasks(f"gem's {name}", size, test_size, seed)
        # It loads its data here, rather than in the first episode.
        explained(self.name, lambda: self.make().reset(seed=seed))

    def tasks(self) -> dict[str, list[dict[str, Any]]]:
        return self.all

    def open(self, task: Any, seed: int) -> TextEpisode:
        env = self.make()
        first, _ = env.reset(seed=task["seed"])
        return GemEpisode(env, first)


class GemEpisode(GymEpisode):
    """An episode of gem. Its environment has no resources to free."""

    def close(self) -> None:
        pass

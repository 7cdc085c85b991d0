"""Games of textarena for one player."""

from __future__ import annotations

import random
from typing import Any, Callable, Sequence

from ..environments.errors import BadEnvironment
from ..environments.text import Shown, TextEnvironment, TextEpisode
from .explained import explained, unknown_name
from .seeds import seeded_tasks


class TextArena(TextEnvironment):
    """A game of textarena, such as `GuessTheNumber-v0`. Further arguments are those of `textarena.make()`.

    Args:
        size: Number of tasks of the split `train`.
        test_size: Number of tasks of the split `test`.
        seed: The seed of the first task.
    """

    source = "textarena"
    packages: Sequence[str] = ("textarena",)
    repeatable = True
    draws_globally = True

    def __init__(self, name: str, *, size: int = 100, test_size: int = 20, seed: int = 1, **options: Any) -> None:
        import textarena
        from textarena.envs.registration import ENV_REGISTRY

        if name not in ENV_REGISTRY:
            raise unknown_name("textarena", name, ENV_REGISTRY)
        self.name = f"textarena-{name}"
        self.make: Callable[..., Any] = lambda: textarena.make(name, **options)
        self.all = seeded_tasks(f"textarena's {name}", size, test_size, seed)
        try:
            # It loads its words and asks for its players here, rather than in the first episode.
            explained(self.name, lambda: Game(self.make(), seed))
        except (AssertionError, ValueError) as error:
            if "player" not in str(error).lower():
                raise
            raise BadEnvironment(f"{name} is a game of several players ({error}), expected one for a single player") from error

    def tasks(self) -> dict[str, list[dict[str, Any]]]:
        return self.all

    def open(self, task: Any, seed: int) -> TextEpisode:
        random.seed(task["seed"])
        return Game(self.make(), task["seed"])


class Game(TextEpisode):
    """A game. If it is not over at the end of the episode, the reward is 0, because nothing was won."""

    def __init__(self, env: Any, seed: int) -> None:
        self.env = env
        env.reset(num_players=1, seed=seed)
        self.first = env.get_observation()[1]

    def step(self, text: str) -> tuple[Shown, bool]:
        done, _ = self.env.step(action=text)
        return (None if done else self.env.get_observation()[1]), bool(done)

    def score(self) -> Any:
        rewards, info = self.env.close()
        return {"reward": float((rewards or {}).get(0, 0)), "details": {"reason": (info or {}).get(0, {}).get("reason")}}

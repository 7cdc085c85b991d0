"""Environments of gymnasium with few actions: toy text, MiniGrid and BabyAI. The model writes actions as words."""

from __future__ import annotations

import re
from typing import Any, Callable, Sequence

from ..environments.errors import BadEnvironment
from ..environments.text import Shown, TextEnvironment, TextEpisode
from .explained import explained, unknown_name
from .gym_episode import GymEpisode
from .seeds import seeded_tasks

_GRID = ("left", "right", "forward", "pickup", "drop", "toggle", "done")

#: The goal and the actions' words, in the order of the actions' numbers, by the beginning of the name.
_KNOWN: dict[str, tuple[str, Sequence[str]]] = {
    "FrozenLake": ("Reach G.", ("left", "down", "right", "up")),
    "CliffWalking": ("Reach T, and stay off the cliff C.", ("up", "right", "down", "left")),
    "Taxi": ("Bring the passenger to the destination.", ("south", "north", "east", "west", "pickup", "dropoff")),
    "Blackjack": ("Come closer to 21 than the dealer, and not above it.", ("stick", "hit")),
    "MiniGrid": ("", _GRID),
    "BabyAI": ("", _GRID),
}


class Gymnasium(TextEnvironment):
    """An environment of gymnasium, such as `FrozenLake-v1`.

    Args:
        size: Number of tasks of the split `train`.
        test_size: Number of tasks of the split `test`.
        seed: The seed of the first task.
        actions: The actions' words, in the order of their numbers.
        goal: The first sentence that the model reads.
        options: Further arguments of `gymnasium.make()`.
        keep_colors: True to show a colored letter as a terminal does. Default: the letter stands in brackets.
    """

    source = "gymnasium"
    packages: Sequence[str] = ("gymnasium",)
    repeatable = True

    def __init__(
        self,
        name: str,
        *,
        size: int = 100,
        test_size: int = 20,
        seed: int = 1,
        actions: Sequence[str] | None = None,
        goal: str | None = None,
        options: dict[str, Any] | None = None,
        keep_colors: bool = False,
    ) -> None:
        import gymnasium

        if name.startswith(("MiniGrid", "BabyAI")):
            import minigrid  # noqa: F401 - the import registers its environments

            self.packages = ("gymnasium", "minigrid")

        if name not in gymnasium.registry:
            raise unknown_name("gymnasium", name, gymnasium.registry)
        known_goal, words = next((known for begin, known in _KNOWN.items() if name.startswith(begin)), ("", ()))
        self.name = f"gymnasium-{name}".replace("/", "-")
        self.words = list(words if actions is None else actions)
        self.goal = known_goal if goal is None else goal
        self.keep_colors = keep_colors
        self.make: Callable[..., Any] = lambda: gymnasium.make(name, **{**_rendering(gymnasium.spec(name)), **(options or {})})
        self.all = seeded_tasks(f"gymnasium's {name}", size, test_size, seed)
        _check_actions(name, explained(self.name, self.make).action_space, self.words)

    def tasks(self) -> dict[str, list[dict[str, Any]]]:
        return self.all

    def open(self, task: Any, seed: int) -> TextEpisode:
        env = self.make()
        seen, _ = env.reset(seed=task["seed"])
        episode = Moves(env, self.words, self.keep_colors)
        mission = seen.get("mission") if isinstance(seen, dict) else None
        goal = mission if mission is not None and not self.goal else self.goal
        episode.first = f"{goal} {episode.hint}\n".lstrip() + episode.show(seen)
        return episode


class Moves(GymEpisode):
    """An episode that is stepped by the words of its actions. Other words are answered with a hint, and change nothing."""

    def __init__(self, env: Any, words: Sequence[str], keep_colors: bool) -> None:
        super().__init__(env, "")
        self.words = words
        self.keep_colors = keep_colors
        self.hint = f"Say {', '.join(words[:-1])} or {words[-1]}."

    def step(self, text: str) -> tuple[Shown, bool]:
        word = text.strip()
        if word not in self.words:
            return self.hint, False
        seen, reward, terminated, truncated, _ = self.env.step(self.words.index(word))
        self.reward += float(reward)
        return self.show(seen), bool(terminated or truncated)

    def show(self, seen: Any) -> str:
        """Returns the rendering as text, the grid, or the observation itself."""
        if self.env.render_mode == "ansi":
            text = str(self.env.render())
            return text if self.keep_colors else re.sub(r"\x1b\[[\d;]*m(.*?)\x1b\[0m", r"[\1]", text)
        grid = getattr(self.env.unwrapped, "pprint_grid", None)
        return str(seen) if grid is None else str(grid())


def _rendering(spec: Any) -> dict[str, Any]:
    from gymnasium.envs.registration import load_env_creator

    creator = load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    return {"render_mode": "ansi"} if "ansi" in getattr(creator, "metadata", {}).get("render_modes", []) else {}


def _check_actions(name: str, space: Any, words: Sequence[str]) -> None:
    count = getattr(space, "n", None)
    if count is None:
        raise BadEnvironment(f"{name} has actions that are no numbers ({space}): write an adapter for it")
    if len(words) != int(count):
        raise BadEnvironment(
            f"{name} has {count} actions, and words for {len(words)} of them: name each, as in "
            '--env-args \'{"actions": ["left", "right"]}\''
        )

"""Environments as the host plays them."""

from __future__ import annotations

import inspect
from importlib import metadata
from typing import Any, Mapping, Sequence

from ..environments.definition import Environment
from ..environments.episode import Context, OwnEpisode, OwnUser, resolve
from ..environments.errors import BadEnvironment, BadResult
from ..environments.text import TextEnvironment, TextEpisode
from ..environments.tool import place_of
from .randomness import Randomness


class Hosted:
    """An environment as the host plays it. `kind` is `tools` (calls) or `turns` (whole messages)."""

    kind = "turns"

    async def prepare(self) -> None:
        """Prepares the environment. Called once, before the other methods."""

    def facts(self) -> dict[str, Any]:
        """Returns the facts about the environment in the answer of `load`, without its tasks."""
        raise NotImplementedError

    async def splits(self) -> dict[str, Sequence[Any]]:
        """Returns the tasks of each split."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """The file and line of the environment's definition, or an empty text."""
        return ""

    def describe_task(self, task: Any) -> dict[str, Any]:
        """Returns a task's `instruction`, its `id` if it has one, and its `data`."""
        return describe_task(task)

    async def open(self, task: Any, context: Context) -> tuple[Any, dict[str, Any]]:
        """Opens an episode. Returns the episode, and the answer of `open`."""
        raise NotImplementedError

    async def say(self, task: Any, said: list[str], seed: int) -> dict[str, Any]:
        """Returns the next line of the user: `text`, `leaves`, or all `lines`."""
        raise BadEnvironment("this environment has no user of its own")

    async def close(self) -> None:
        """Frees the resources of the environment. Called once, when the process ends."""


class OwnHosted(Hosted):
    """An `Environment`."""

    kind = "tools"

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        if "score" not in environment.parts:
            raise BadEnvironment(f"{environment.place}: environment {environment.name} has no score, expected @env.score")

    @property
    def place(self) -> str:
        return self._environment.place

    def facts(self) -> dict[str, Any]:
        environment = self._environment
        return {
            "name": environment.name,
            "source": environment.source,
            "policy": "" if callable(environment.policy) else environment.policy,
            "tools": [tool.describe() for tool in environment.tools_by_name.values()],
            "repeatable": environment.repeatable,
            "user": "own" if "user" in environment.parts else "instruction",
            "definedAt": self.place,
        }

    async def splits(self) -> dict[str, Sequence[Any]]:
        return self._environment.splits()

    async def open(self, task: Any, context: Context) -> tuple[OwnEpisode, dict[str, Any]]:
        episode = OwnEpisode(self._environment, task, context)
        return episode, await episode.open()

    async def say(self, task: Any, said: list[str], seed: int) -> dict[str, Any]:
        return await OwnUser(self._environment).answer(task, said, seed)


class TextHosted(Hosted):
    """A `TextEnvironment`."""

    def __init__(self, environment: TextEnvironment) -> None:
        self._environment = environment
        for part in ("tasks", "open"):
            if getattr(type(environment), part) is getattr(TextEnvironment, part):
                raise BadEnvironment(f"{type(environment).__name__} has no {part}(), expected one (see TextEnvironment)")

    @property
    def place(self) -> str:
        return place_of(type(self._environment).open)

    def facts(self) -> dict[str, Any]:
        environment = self._environment
        return {
            "name": environment.name,
            "source": environment.source,
            "policy": environment.policy,
            "tools": [],
            "repeatable": environment.repeatable,
            "user": "none",
            "definedAt": self.place,
            "packages": {name: metadata.version(name) for name in environment.packages},
        }

    async def splits(self) -> dict[str, Sequence[Any]]:
        tasks = await resolve(self._environment.tasks())
        return dict(tasks) if isinstance(tasks, Mapping) else {"test": tasks}

    async def open(self, task: Any, context: Context) -> tuple[TextPlayed, dict[str, Any]]:
        environment = self._environment
        randomness = Randomness(context.seed) if environment.draws_globally else None
        opened = await _drawing(randomness, lambda: environment.open(task, context.seed))
        for part in ("step", "score"):
            own = getattr(type(opened), part, None)
            if own is None or own is getattr(TextEpisode, part):
                what = f"open() returned a {type(opened).__name__}, which has no {part}()"
                raise BadResult("environment/bad-world", f"{what}, expected an episode with step() and score()", self.place)
        episode = TextPlayed(opened, randomness)
        return episode, {"messages": _messages_of("first", getattr(opened, "first", ""), self.place)}


class TextPlayed:
    """An attempt at a task of a `TextEnvironment`."""

    def __init__(self, episode: Any, randomness: Randomness | None) -> None:
        self._episode = episode
        self._randomness = randomness

    def turn(self, message: dict[str, Any], **_: Any) -> Any:
        """Takes a message of the model. Returns the answer of `turn`, or an awaitable of the answer."""
        answer = _draw(self._randomness, lambda: self._episode.step(message.get("content") or ""))
        return self._later(answer) if inspect.isawaitable(answer) else self._answer(answer)

    async def _later(self, answer: Any) -> dict[str, Any]:
        return self._answer(await answer)

    def _answer(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], bool):
            what = f"step() returned {answer!r}"[:300]
            raise BadResult("environment/bad-step", f"{what}, expected (text or None, True or False)", place_of(self._episode.step))
        shown, done = answer
        return {"messages": _messages_of("step()", shown, place_of(self._episode.step)), "done": done}

    async def score(self, outcome: dict[str, Any]) -> Any:
        return await _drawing(self._randomness, self._episode.score)

    async def close(self) -> None:
        close = getattr(self._episode, "close", None)
        if close is not None:
            await resolve(close())


def _draw(randomness: Randomness | None, work: Any) -> Any:
    if randomness is None:
        return work()
    with randomness:
        return work()


async def _drawing(randomness: Randomness | None, work: Any) -> Any:
    return await resolve(_draw(randomness, work))


def _messages_of(part: str, shown: Any, place: str) -> list[dict[str, Any]]:
    """Returns the output of a text environment as messages. A text becomes a user message. Raises BadResult for other
    values.
    """
    if shown is None:
        return []
    if isinstance(shown, str):
        return [{"role": "user", "content": shown}]
    if isinstance(shown, (list, tuple)) and all(isinstance(message, Mapping) and "role" in message for message in shown):
        return [dict(message) for message in shown]
    code = "environment/bad-world" if part == "first" else "environment/bad-step"
    raise BadResult(code, f"{part} shows {shown!r}"[:300] + ", expected a text, messages, or None", place)


def describe_task(task: Any) -> dict[str, Any]:
    """Returns the parts of a task that is a dict. Raises BadEnvironment if it has no instruction."""
    if not isinstance(task, Mapping):
        raise BadEnvironment(f"it is a {type(task).__name__}, expected a dict with an instruction")
    instruction = task.get("instruction")
    if not isinstance(instruction, str):
        raise BadEnvironment("it has no instruction, expected a text")
    return {"instruction": instruction, **({"id": str(task["id"])} if "id" in task else {}), "data": dict(task)}


def host_environment(environment: Any) -> Hosted:
    """Returns an environment as the host plays it. Raises BadEnvironment for other values."""
    if isinstance(environment, Hosted):
        return environment
    if isinstance(environment, Environment):
        return OwnHosted(environment)
    if isinstance(environment, TextEnvironment):
        return TextHosted(environment)
    raise BadEnvironment(f"it is a {type(environment).__name__}, expected an Environment or a TextEnvironment")

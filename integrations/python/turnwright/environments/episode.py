"""The values that the functions of an environment receive, and an episode of an environment that is defined in Python.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
import random
from dataclasses import dataclass, field
from typing import Any, Callable

from .definition import Environment
from .errors import BadResult, Refused
from .plain import shown_text
from .tool import Tool, place_of


@dataclass
class Context:
    """The context of a call.

    Attributes:
        episode: The episode's name within its worker.
        seed: A number of the task. All attempts at a task have the same number.
        random: Random numbers of this episode alone. All attempts at a task get the same ones.
    """

    episode: str
    seed: int
    random: random.Random = field(init=False)
    _stopped: bool = False

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def stop(self) -> None:
        """Ends the episode after this call."""
        self._stopped = True


@dataclass(frozen=True)
class Played:
    """The episode to score.

    Attributes:
        said: The agent's messages to the user, in order.
        answer: The last of these messages, or an empty text.
        calls: Every call, in order: `{"name", "arguments", "isError"}`.
        turns: Messages and calls by turn: `{"said", "calls"}`. None if the agent keeps its conversations itself.
        is_done: True if the episode finished, rather than reaching a limit.
    """

    said: list[str]
    answer: str
    calls: list[dict[str, Any]]
    turns: list[dict[str, Any]] | None
    is_done: bool


async def resolve(value: Any) -> Any:
    """Returns the value, or the result of an awaitable."""
    return await value if inspect.isawaitable(value) else value


def call_with(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Calls a function with the values that its parameters name."""
    asked = inspect.signature(function).parameters
    return function(**{name: value for name, value in values.items() if name in asked})


class OwnEpisode:
    """An attempt at a task of an `Environment`."""

    def __init__(self, environment: Environment, task: Any, context: Context) -> None:
        self._environment = environment
        self._task = task
        self._context = context
        self._state: Any = {}
        self._saves = environment.undo

    async def open(self) -> dict[str, Any]:
        """Creates the state. The answer contains the task's policy if `policy` is a function."""
        given = {"task": self._task, "context": self._context}
        create = self._environment.parts.get("state")
        if create is not None:
            state = await resolve(call_with(create, given))
            if state is None:
                raise BadResult(
                    "environment/bad-world",
                    "state() returned None (a forgotten return?), expected a state such as {}",
                    place_of(create),
                )
            # A constant of the module is shared by all episodes.
            self._state = _copied(state)
        policy = self._environment.policy
        if not callable(policy):
            return {}
        text = await resolve(policy(self._task))
        if not isinstance(text, str):
            raise BadResult("environment/bad-world", f"policy() returned {_shown(text)}, expected a text", place_of(policy))
        return {"policy": text}

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Performs a call. Returns its answer, or an awaitable of the answer for an async tool."""
        tool = self._environment.tools_by_name[name]
        saved = _save(self._state) if self._saves else None
        try:
            result = tool.function(**tool.bind(arguments), **self._given(tool))
        except Refused as why:
            return self._refused(saved, why)
        if inspect.isawaitable(result):
            return self._finish(tool, saved, result)
        done = self._ask_done()
        return self._waited(tool, result, done) if inspect.isawaitable(done) else self._answer(tool, result, done)

    async def _finish(self, tool: Tool, saved: Any, result: Any) -> dict[str, Any]:
        try:
            value = await result
        except Refused as why:
            return self._refused(saved, why)
        return await self._waited(tool, value, self._ask_done())

    async def _waited(self, tool: Tool, result: Any, done: Any) -> dict[str, Any]:
        return self._answer(tool, result, await resolve(done))

    def _given(self, tool: Tool) -> dict[str, Any]:
        values = {"state": self._state, "task": self._task, "context": self._context}
        return {name: values[name] for name in tool.given}

    def _ask_done(self) -> Any:
        is_done = self._environment.parts.get("is_done")
        return False if is_done is None else call_with(is_done, {"state": self._state, "task": self._task})

    def _answer(self, tool: Tool, result: Any, done: Any) -> dict[str, Any]:
        if not isinstance(done, bool):
            place = place_of(self._environment.parts["is_done"])
            raise BadResult("environment/bad-step", f"is_done() returned {type(done).__name__}, expected True or False", place)
        try:
            text = shown_text(result)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadResult(
                "environment/bad-result",
                f"the result of {tool.name}() cannot be shown: {error}, expected a text or plain data (None for no result)",
                place_of(tool.function),
            ) from error
        ends = tool.ends or self._context._stopped
        return {"text": text, **({"ends": True} if ends else {}), **({"done": True} if done else {})}

    def _refused(self, saved: Any, why: Refused) -> dict[str, Any]:
        if saved is not None:
            self._state = saved()
        return {"text": str(why), "isError": True, **({"ends": True} if self._context._stopped else {})}

    async def score(self, outcome: dict[str, Any]) -> Any:
        """Scores the episode.

        `found` of the answer has the members of the state that `wanted` names. If such a member is missing,
        `state_members` has the names of the existing members.
        """
        score = self._environment.parts["score"]
        said = outcome["said"]
        played = Played(said, said[-1] if said else "", outcome["calls"], outcome.get("turns"), outcome["isDone"])
        result = await resolve(call_with(score, {"state": self._state, "task": self._task, "episode": played}))
        if not isinstance(result, dict):
            return result
        wanted = result.get("wanted")
        if not isinstance(wanted, dict):
            return result
        found = {name: _member(self._state, name) for name in wanted if _has(self._state, name)}
        return {**result, "found": found, **({} if len(found) == len(wanted) else {"state_members": _names(self._state)})}

    async def close(self) -> None:
        """Frees the resources of the state."""
        dispose = self._environment.parts.get("dispose")
        if dispose is not None:
            await resolve(call_with(dispose, {"state": self._state, "task": self._task}))


class OwnUser:
    """The user of an `Environment`. The user has no memory: each line follows from the task, the seed and the messages
    so far.
    """

    def __init__(self, environment: Environment) -> None:
        self._function = environment.parts.get("user")

    async def answer(self, task: Any, said: list[str], seed: int) -> dict[str, Any]:
        """Returns the next line as `text`, or `leaves`. A user with fixed lines returns all of them as `lines`."""
        function = self._function
        if function is None:
            return {"lines": [task["instruction"]]}
        context = Context("user", seed * 1_000_003 + len(said))
        values = {"task": task, "said": list(said), "context": context}
        answer = await resolve(call_with(function, values))
        if "said" not in inspect.signature(function).parameters:
            if isinstance(answer, str) or not _are_lines(answer):
                raise BadResult(
                    "user/bad-line", f"it returned {_shown(answer)}, expected a list of lines such as [\"Hello.\"]", place_of(function)
                )
            return {"lines": list(answer)}
        if answer is None:
            return {"leaves": True}
        if not isinstance(answer, str):
            raise BadResult("user/bad-line", f"it returned {_shown(answer)}, expected a text, or None to leave", place_of(function))
        return {"text": answer}


def _are_lines(lines: Any) -> bool:
    return hasattr(lines, "__iter__") and len(list(lines)) > 0 and all(isinstance(line, str) for line in lines)


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:200]


def _copied(state: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
    except Exception:
        pass
    try:
        return copy.deepcopy(state)
    except Exception:
        # A connection or a lock: it is the episode's own.
        return state


def _save(state: Any) -> Callable[[], Any]:
    """Saves a state. Returns a function that returns the saved state."""
    try:
        data = pickle.dumps(state, pickle.HIGHEST_PROTOCOL)
    except Exception:
        pass
    else:
        return lambda: pickle.loads(data)
    try:
        copied = copy.deepcopy(state)
    except Exception:
        return lambda: state
    return lambda: copied


def _has(state: Any, name: str) -> bool:
    return name in state if isinstance(state, dict) else hasattr(state, name)


#: The most names of a state's members in an answer.
_MOST_NAMES = 1000


def _names(state: Any) -> list[str]:
    names = state if isinstance(state, dict) else getattr(state, "__dict__", {})
    return [name for name in itertools.islice(names, _MOST_NAMES) if isinstance(name, str)]


def _member(state: Any, name: str) -> Any:
    return state[name] if isinstance(state, dict) else getattr(state, name)

"""Environments that are defined in Python."""

from __future__ import annotations

import inspect
import re
from typing import Any, Callable, Mapping, Sequence, TypeVar

from .errors import BadEnvironment
from .tool import Tool, place_of

Task = Mapping[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_SETTINGS = ("name", "policy", "tasks", "repeatable", "undo", "source", "place")


class Environment:
    """A domain in which a model is trained: tools, policy text, tasks, state, user and score.

        env = Environment("calendar", policy="You keep a calendar.")
        env.tasks = [{"instruction": "Ann wants friday at 9."}]

    `turnwright rollout --env ./calendar_env.py` plays the environment of a file.

    Args:
        name: Letters, digits, `-`, `_` and `.`.
        policy: The system message, or a function of the task that returns it.
        tasks: Tasks of the split `test`, or lists by split. Each is a dict with an `instruction`.
        repeatable: True if the same calls always have the same results. Episodes can then resume after a crash
            and be forked.
        undo: True if `refuse()` undoes the changes of its call. The state is saved before each call for this.
            With False, tools refuse before they change anything, and a large state costs nothing.
        source: The origin of the tasks, in words.
    """

    def __init__(
        self,
        name: str,
        policy: str | Callable[[Any], str] = "",
        tasks: Sequence[Task] | Mapping[str, Sequence[Task]] = (),
        *,
        repeatable: bool = False,
        undo: bool = True,
        source: str = "",
    ) -> None:
        self.place = _caller()
        if not isinstance(name, str) or not re.fullmatch(r"(?!tau-)[\w.-]+", name, re.ASCII):
            raise BadEnvironment(f"{self.place}: the name is {name!r}, expected letters, digits, -, _ and ., not beginning with tau-")
        if not isinstance(policy, str) and not callable(policy):
            raise BadEnvironment(f"{self.place}: the policy is {policy!r}, expected a text, or a function of the task")
        self.name = name
        self.policy = policy
        self.tasks = tasks
        self.repeatable = repeatable
        self.undo = undo
        self.source = source
        self._tools: dict[str, Tool] = {}
        self._parts: dict[str, Callable[..., Any]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in _SETTINGS:
            parts = "tool, state, user, score, is_done and dispose"
            raise AttributeError(f"an environment has no setting '{name}', expected tasks or policy (decorators set {parts}, as @env.score)")
        super().__setattr__(name, value)

    def tool(self, function: Function | None = None, *, timeout: float = 30.0, ends: bool = False) -> Any:
        """Adds a typed function as a tool. Its docstring describes it to the model.

        The function may ask for `state`, `task` and `context` by name; the model does not see these. It returns a
        text, or a value that the model reads as JSON. It may be async. `refuse()` answers a mistake of the model.

        Args:
            timeout: Time limit of a call, in seconds. A call that exceeds it fails the episode.
            ends: True if a successful call ends the episode.
        """

        def add(function: Function) -> Function:
            tool = Tool(function, timeout=timeout, ends=ends)
            if tool.name in self._tools:
                raise BadEnvironment(f"{place_of(function)}: two tools are called {tool.name}, expected names of their own")
            self._tools[tool.name] = tool
            return function

        return add if function is None else add(function)

    def state(self, function: Function) -> Function:
        """Sets the function `state(task)` that returns an episode's initial state. Default: an empty dict."""
        return self._set("state", function, ("task", "context"))

    def user(self, function: Function) -> Function:
        """Sets the user.

        `user(task)` returns the user's lines in order. `user(task, said)` returns the next line, given the agent's
        messages so far (none at the opening), or None to leave. Default: says the instruction, and leaves at the
        first answer.
        """
        return self._set("user", function, ("task", "said", "context"))

    def score(self, function: Function) -> Function:
        """Sets the function that scores an episode. It may ask for `state`, `task` and `episode` by name.

        It returns a number, True or False, or a dict with some of `reward`, `wanted` (members of the state to
        compare), `outputs` (texts that the agent must have said), `components`, `turn_rewards`, `success` and
        `details`.
        """
        return self._set("score", function, ("state", "task", "episode"))

    def is_done(self, function: Function) -> Function:
        """Sets the function that returns True when the episode is over. It is called after each call."""
        return self._set("is_done", function, ("state", "task"))

    def dispose(self, function: Function) -> Function:
        """Sets the function that frees the state's resources. It is called after every episode."""
        return self._set("dispose", function, ("state", "task"))

    def __getattr__(self, name: str) -> Any:
        parts = "tool, state, user, score, is_done and dispose"
        raise AttributeError(f"an environment has no part '{name}', expected one of {parts}")

    def _set(self, part: str, function: Function, allowed: tuple[str, ...]) -> Function:
        where = f"{place_of(function)} {part}"
        if part in self._parts:
            raise BadEnvironment(f"{where}: the environment has this part already, at {place_of(self._parts[part])}")
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in allowed and parameter.default is parameter.empty:
                raise BadEnvironment(f"{where}: it asks for '{name}', expected some of {', '.join(allowed)}")
        self._parts[part] = function
        return function

    @property
    def tools_by_name(self) -> Mapping[str, Tool]:
        """The tools, by name."""
        return self._tools

    @property
    def parts(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that decorators set, by the decorator's name."""
        return self._parts

    def splits(self) -> dict[str, Sequence[Task]]:
        """Returns the tasks by split. Raises BadEnvironment if there are no tasks, or if they have another form."""
        by_split = dict(self.tasks) if isinstance(self.tasks, Mapping) else {"test": self.tasks}
        for split, tasks in by_split.items():
            if isinstance(tasks, (str, bytes)) or not hasattr(tasks, "__len__") or not hasattr(tasks, "__getitem__"):
                raise BadEnvironment(
                    f"{self.place}: tasks of split {split} are a {type(tasks).__name__}, expected a list such as "
                    '[{"instruction": "…"}]'
                )
            if len(tasks) == 0:
                raise BadEnvironment(f'{self.place}: split {split} has no tasks, expected some such as {{"instruction": "…"}}')
        return by_split


def _caller() -> str:
    """Returns the file and line that create the environment."""
    frame = inspect.currentframe()
    caller = frame and frame.f_back and frame.f_back.f_back
    return f"{caller.f_code.co_filename}:{caller.f_lineno}" if caller else "?"

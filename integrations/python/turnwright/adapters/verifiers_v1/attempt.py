"""One attempt at a task of verifiers' new stack. `Env.run()` plays it as a coroutine, and waits for each reply."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from ...environments.errors import BadResult
from ..component_name import component_name
from .exchange import Asked, Closed, Ended, Event, Exchange
from .seat import Seat
from .tools import Tools


class Attempt:
    """An attempt. `open()` and `turn()` answer with the messages that are new to the model."""

    def __init__(self, environment: Any, seat_name: str, task: Any, shared: Tools) -> None:
        from verifiers.v1.episode import EnvInfo, Episode
        from verifiers.v1.trace import TraceTask

        self._environment = environment
        self._task = task
        self._exchange = Exchange()
        kind = type(environment).__name__
        self._seat = Seat(kind, getattr(environment.config, seat_name), shared, self._exchange)
        self._agents = SimpleNamespace(**{seat_name: self._seat})
        about = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        self._episode = Episode(env=EnvInfo(id=environment.config.env_id), task=about)
        self._playing: asyncio.Task[None] | None = None
        self._last: Event | None = None

    @property
    def trace(self) -> Any:
        """The trace so far."""
        return self._seat.traces[0]

    async def open(self) -> dict[str, Any]:
        """Opens the attempt. Returns the first messages, and the tools of the task."""
        self._playing = asyncio.get_running_loop().create_task(self._play())
        answer = await self._next()
        return {**answer, "tools": self._seat.tools.describe()}

    async def _play(self) -> None:
        environment = self._environment
        try:
            await environment.setup(self._agents)
            await environment.run(self._task, self._agents)
            self._episode.traces.extend(self._seat.traces)
            self._episode.ok = True
            await environment.finalize(self._task, self._episode)
        except Exception as error:
            self._exchange.end(error)
        else:
            self._exchange.end()

    async def turn(self, message: dict[str, Any], *, finish: str | None, usage: dict[str, int] | None) -> dict[str, Any]:
        """Takes a message of the model. Returns the next messages, and the stop condition that ended the attempt."""
        from verifiers.v1.types import AssistantMessage, ToolCall

        calls = [ToolCall(**{name: call[name] for name in ("id", "name", "arguments")}) for call in message.get("tool_calls") or []]
        said = AssistantMessage(
            content=message.get("content") or None, reasoning_content=message.get("reasoning_content"), tool_calls=calls or None
        )
        self._exchange.reply((said, finish, usage))
        return await self._next()

    async def _next(self) -> dict[str, Any]:
        """Waits for the environment's next message, or for the end of the attempt."""
        event = self._last = await self._exchange.next()
        if isinstance(event, Asked):
            return {"messages": [_to_plain(message) for message in event.messages]}
        if isinstance(event, Closed):
            return {"messages": [], "done": event.stop}
        raise _failure(event) or BadResult(
            "environment/bad-world", f"{type(self._environment).__name__} ended without an attempt of its agent"
        )

    async def score(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Scores the attempt. An attempt that ended at one of Turnwright's limits is scored as at a limit of the
        environment.
        """
        while isinstance(self._last, Asked):
            self._exchange.reply(None)
            self._last = await self._exchange.next()
        if isinstance(self._last, Closed):
            self._exchange.allow_score()
            self._last = await self._exchange.next()
        assert isinstance(self._last, Ended)
        failure = _failure(self._last)
        if failure is not None:
            raise failure
        return _describe_score(self.trace)

    async def close(self) -> None:
        """Ends the attempt, if it still runs."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait([self._playing])


def _failure(event: Ended) -> Exception | None:
    """Returns the error that ended an environment: the error of its own code, rather than the library's error around
    it.
    """
    error = event.error
    cause = None if error is None else error.__cause__
    return cause if isinstance(cause, Exception) and type(error).__name__ == "TaskError" else error


def _to_plain(message: Any) -> dict[str, Any]:
    plain: dict[str, Any] = message.model_dump(mode="json", exclude_none=True)
    return {name: plain[name] for name in ("role", "content", "tool_call_id") if name in plain}


def _describe_score(trace: Any) -> dict[str, Any]:
    rewards = {name: one for name, one in trace.rewards.items() if one is not None}
    metrics = {name: value for name, value in trace.metrics.items() if value is not None}
    known = {*rewards, *metrics}
    components = {component_name(name, known): {"value": one.score, "weight": one.weight}
                  for name, one in rewards.items()}
    components.update({component_name(name, known): {"value": value, "weight": 0.0}
                       for name, value in metrics.items() if name not in rewards})
    details: dict[str, Any] = {"stop_condition": trace.stop_condition, "is_truncated": trace.is_truncated}
    alike = {name: value for name, value in metrics.items() if name in rewards}
    if alike:
        details["metrics"] = alike
    return {"reward": trace.reward, **({"components": components} if components else {}), "details": details}

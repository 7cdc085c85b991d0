"""The agent that an environment of verifiers plays with: its engine is outside."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any, AsyncIterator

from ...environments.errors import BadResult
from .exchange import Exchange
from .rollout import Rollout
from .tools import Tools


class Seat:
    """Stands in for `verifiers.v1.Agent` within `Env.run(task, agents)`. It plays one rollout."""

    def __init__(self, environment: str, config: Any, shared: Tools, exchange: Exchange) -> None:
        self.config = config
        self.trainable = True
        self.traces: list[Any] = []
        self.tools = Tools()
        self._environment = environment
        self._shared = shared
        self._exchange = exchange
        self._is_taken = False

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self._environment} uses {name} of its agent, expected run() or interaction()")

    async def run(self, task: Any, **_: Any) -> Any:
        """Plays a task until the model answers without a call. Returns its trace."""
        rollout = await self._open(task)
        await rollout.segment(to_messages(task.data.prompt))
        await rollout.close("agent_completed")
        return rollout.trace

    @asynccontextmanager
    async def interaction(self, task: Any, **_: Any) -> AsyncIterator[Interaction]:
        """Opens a conversation in which the environment is the user."""
        rollout = await self._open(task)
        yield Interaction(rollout)
        await rollout.close("user_closed")

    async def _open(self, task: Any) -> Rollout:
        if self._is_taken:
            raise BadResult(
                "environment/bad-step", f"{self._environment} began a second attempt of its agent, expected one an episode"
            )
        self._is_taken = True
        rollout = Rollout(task, self.config, self._shared, self._exchange)
        self.traces.append(rollout.trace)
        await rollout.open()
        self.tools = rollout.tools
        return rollout


class Interaction:
    """Stands in for `verifiers.v1.agent.Interaction`."""

    def __init__(self, rollout: Rollout) -> None:
        self.trace = rollout.trace
        self._rollout = rollout
        self._has_begun = False
        self._is_over = False

    async def turn(self, message: Any = None) -> Any:
        """Says something to the model, and returns its answer. A task with a prompt is opened by `turn()`."""
        from verifiers.v1.agent import Segment

        prompt = None if self._has_begun else self._rollout.task.data.prompt
        if self._is_over:
            raise RuntimeError("the conversation is over, expected no turn after a terminated one")
        if (message is None) == (prompt is None):
            raise ValueError("turn() takes no message where the task's prompt opens the conversation, and one elsewhere")
        self._has_begun = True
        answered = await self._rollout.segment(to_messages(prompt if message is None else message))
        self._is_over = not answered
        return Segment(messages=answered, terminated=not answered)


def to_messages(given: Any) -> list[Any]:
    """Returns a prompt or a turn as messages."""
    from verifiers.v1.dialects import parse_message
    from verifiers.v1.types import UserMessage

    if given is None:
        return []
    if isinstance(given, str):
        return [UserMessage(content=given)]
    return [parse_message(one) if isinstance(one, dict) else one for one in given]

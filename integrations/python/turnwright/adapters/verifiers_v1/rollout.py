"""One rollout of a task: its trace, which grows by the replies of an engine outside, its tools, stops and rewards."""

from __future__ import annotations

from typing import Any

from .exchange import Exchange
from .tools import Tools


class Rollout:
    """The part of verifiers' harness and rollout that an environment sees."""

    def __init__(self, task: Any, config: Any, shared: Tools, exchange: Exchange) -> None:
        from verifiers.v1.session import RolloutLimits
        from verifiers.v1.state import state_cls
        from verifiers.v1.trace import AgentInfo, Trace, TraceTask

        about = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        self.task = task
        self.trace = Trace(task=about, state=state_cls(type(task))(), agent=AgentInfo(config=config))
        self.tools = Tools()
        self._shared = shared
        self._exchange = exchange
        limits = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens")
        self._limits = RolloutLimits(**{name: getattr(config, name) for name in limits})
        self._messages: list[Any] = []
        #: Number of messages that the model has read or written.
        self._seen = 0

    async def open(self) -> None:
        """Prepares the task and its tools."""
        from verifiers.v1.types import SystemMessage
        from verifiers.v1.utils.decorators import invoke

        task = self.task
        await invoke(task.setup, {"trace": self.trace, "runtime": None})
        await self.tools.serve(task.toolsets(task.config), task.data)
        self.tools.share(self._shared)
        self._definitions = self.tools.definitions()
        if task.data.system_prompt:
            self._messages.append(SystemMessage(content=task.data.system_prompt))

    async def segment(self, messages: list[Any]) -> list[Any]:
        """Plays until the model answers without a call. Returns the messages of the model and of its tools. Empty if
        no reply came any more.
        """
        self._messages += messages
        answered: list[Any] = []
        while not await self._is_stopped():
            given = await self._exchange.ask(self._messages[self._seen :])
            if given is None:
                self.trace.stop("cut_off")
                break
            reply = self._commit(given)
            answered.append(reply)
            if not reply.tool_calls:
                break
            results = [await self.tools.call(call, self.trace.state) for call in reply.tool_calls]
            self._messages += results
            answered += results
        return answered

    def _commit(self, given: Any) -> Any:
        """Adds a reply to the trace. Returns its message."""
        from verifiers.v1.graph import prepare_turn
        from verifiers.v1.trace import ModelCall
        from verifiers.v1.types import Response, Usage

        message, finish, usage = given
        why = "length" if finish == "length" else "tool_calls" if message.tool_calls else "stop"
        counted = None if usage is None else Usage(**usage)
        response = Response(
            id=f"turn-{self.trace.num_turns}", created=0, model="policy", message=message, finish_reason=why, usage=counted
        )
        node = prepare_turn(self.trace, self._messages, self._definitions).commit(response)
        self.trace.calls.append(ModelCall(node=node, model="policy", finish_reason=why, usage=counted))
        self._messages.append(message)
        self._seen = len(self._messages)
        return message

    async def _is_stopped(self) -> bool:
        """Checks the limits and stops, as verifiers does before each request to a model. The first one that holds is
        the stop condition.
        """
        from verifiers.v1.session import call_hook
        from verifiers.v1.trace import Trace

        if self.trace.stop_condition is None:
            reached = self._limits.reached(self.trace)
            if reached is not None:
                self.trace.stop(reached)
        for stop in self.task.hooks("stop"):
            if self.trace.stop_condition is not None:
                break
            if await call_hook(stop, {Trace: self.trace}):
                self.trace.stop(stop.__name__)
        return self.trace.stop_condition is not None

    async def close(self, stop: str) -> None:
        """Ends the rollout, and scores it as soon as the host wants the score."""
        from verifiers.v1.utils.decorators import invoke

        self.trace.stop(stop)
        await self._exchange.close(self.trace.stop_condition or stop)
        await invoke(self.task.finalize, {"trace": self.trace, "runtime": None})
        await self.task.score(self.trace, None)
        self.trace.ok = not self.trace.errors

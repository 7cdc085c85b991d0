"""One attempt at a task of verifiers' old stack: its hooks in the order in which MultiTurnEnv.rollout() calls them."""

from __future__ import annotations

import inspect
import time
from typing import Any

from ...environments.errors import BadResult
from .messages import snapshot, to_plain
from .rewards import describe_rewards, failures_of_scoring


class Attempt:
    """An attempt. Turnwright's engine samples: `open()` and `turn()` return the messages that are new to the model."""

    def __init__(self, name: str, environment: Any, row: dict[str, Any]) -> None:
        # The member of a group has hooks, state and rubric of its own.
        while hasattr(environment, "_route_child_input"):
            member, row, _ = environment._route_child_input(row)
            environment = environment.get_env_for_name(member)
        self._name = name
        self._environment = environment
        self._row = row
        self._prompt: list[Any] = []
        self._seen: list[tuple[Any, ...]] = []
        self._is_done = False
        self._is_clean = False
        self.state: Any = {}

    async def open(self) -> dict[str, Any]:
        """Opens the attempt. Returns the first messages."""
        environment = self._environment
        self.state = await environment.init_state(self._row, _no_client(type(environment).__name__), "policy", {})
        timing = self.state["timing"]
        timing.generation.start = timing.setup.start = time.time()
        # Its result is the state, or None: before 0.3 always None.
        self.state = (await environment.setup_state(self.state)) or self.state
        timing.setup.end = time.time()
        return await self._ask()

    async def turn(self, message: dict[str, Any], *, finish: str | None, usage: dict[str, int] | None) -> dict[str, Any]:
        """Takes a message of the model. Returns the next messages, and the stop condition that ended the attempt."""
        environment = self._environment
        response = _to_response(message, finish, usage, len(self.state["trajectory"]))
        environment.increment_state_usage_from_response(self.state, response)
        await environment.add_model_response(self.state, self._prompt, response)
        self._seen = [snapshot(one) for one in [*self._prompt, *self.state["trajectory"][-1]["completion"]]]
        return await self._ask()

    async def _ask(self) -> dict[str, Any]:
        from verifiers.errors import ToolError
        from verifiers.utils.message_utils import maybe_normalize_messages

        environment = self._environment
        while not await environment.is_completed(self.state):
            try:
                found = await environment.get_prompt_messages(self.state)
            except ToolError as error:
                # The environment ends an attempt at such a call, and scores it.
                self.state["error"] = error
                continue
            messages = maybe_normalize_messages(found, field_name="prompt_messages")
            if self.state.get("final_env_response") is not None:
                continue
            self._check_history(messages)
            self._prompt = messages
            return {"messages": to_plain(messages[len(self._seen) :])}
        self._is_done = True
        self._raise_failure()
        last = self.state.get("final_env_response") or []
        return {
            "messages": to_plain(maybe_normalize_messages(last, field_name="final_env_response")),
            "done": self.state["stop_condition"],
        }

    def _raise_failure(self) -> None:
        """Raises the error that ended the attempt, unless the environment scores attempts with such an error."""
        from verifiers.errors import ToolError

        error = self.state.get("error")
        if isinstance(error, BaseException) and not isinstance(error, ToolError):
            raise error

    def _check_history(self, messages: list[Any]) -> None:
        shown = [snapshot(message) for message in messages[: len(self._seen)]]
        if shown != self._seen:
            raise BadResult(
                "environment/bad-step",
                f"{type(self._environment).__name__} shows the model another history than it had, expected the same messages",
            )

    async def score(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Scores the attempt by the rubric. Raises what a reward function raised."""
        if not self._is_done:
            await self._cut_off()
        await self._clean()
        rubric = self._environment.rubric
        with failures_of_scoring() as failures:
            await rubric.score_rollout(self.state)
        await rubric.cleanup(self.state)
        if failures:
            raise failures[0]
        state = self.state
        details = {"stop_condition": state.get("stop_condition"), "is_truncated": bool(state.get("is_truncated"))}
        return {**describe_rewards(rubric, state["reward"], state["metrics"]), "details": details}

    async def _cut_off(self) -> None:
        """Marks an attempt that ended at a limit. Rubrics read the last message. If the first reply was cut off, an
        empty message stands for it.
        """
        self.state["is_truncated"] = True
        if not self.state["trajectory"]:
            empty = _to_response({"content": ""}, "length", None, 0)
            await self._environment.add_model_response(self.state, self._prompt, empty)

    async def _clean(self) -> None:
        if not self._is_clean:
            self._is_clean = True
            await self._environment.cleanup(self.state)

    async def close(self) -> None:
        """Frees the resources of the attempt."""
        if self.state:
            await self._clean()


def _to_response(message: dict[str, Any], finish: str | None, usage: dict[str, int] | None, index: int) -> Any:
    """Returns the reply of the model as verifiers' clients return it."""
    from verifiers.types import Response, ResponseMessage, ToolCall, Usage

    calls = [ToolCall(**{name: call[name] for name in ("id", "name", "arguments")}) for call in message.get("tool_calls") or []]
    is_cut = finish == "length"
    counted = usage and Usage(reasoning_tokens=0, total_tokens=sum(usage.values()), **usage)
    said = ResponseMessage(
        content=message.get("content"),
        reasoning_content=message.get("reasoning_content"),
        tool_calls=calls or None,
        finish_reason="length" if is_cut else "tool_calls" if calls else "stop",
        is_truncated=is_cut,
    )
    return Response(id=f"turn-{index}", created=0, model="policy", usage=counted or None, message=said)


def _no_client(environment: str) -> Any:
    """Returns a client of verifiers that refuses to sample."""
    from verifiers.clients import Client

    async def refuse(*_: Any, **__: Any) -> None:
        raise BadResult("environment/exception", f"{environment} asked the model itself, expected to be asked")

    async def close(_: Any) -> None:
        pass

    names = {*Client.__abstractmethods__, "get_response"}
    assert all(inspect.isfunction(getattr(Client, name)) for name in names)
    kind = type("NoClient", (Client,), {**{name: refuse for name in names}, "close": close})
    return kind(None)

"""Loads environments of verifiers' old stack."""

from __future__ import annotations

import re
import signal
from types import ModuleType
from typing import Any, Callable, Sequence, TypeVar

from ...environments.episode import Context
from ...environments.errors import BadEnvironment
from ...environments.tool import place_of
from ...host.hosted import Hosted
from ..explained import explained
from ..verifiers import packages_of
from .attempt import Attempt
from .messages import prompt_fault, text_of, to_plain
from .refusals import find_refusals
from .rewards import watch_rewards

Result = TypeVar("Result")


def load(name: str, module: ModuleType, args: dict[str, Any]) -> Hosted:
    """Returns the environment that a module's `load_environment()` makes. Raises BadEnvironment with each reason."""
    from verifiers.utils.env_utils import load_environment

    environment = explained(name, lambda: _with_own_signals(lambda: load_environment(name, **args)))
    refusals = find_refusals(name, environment)
    if refusals:
        raise BadEnvironment("; ".join(refusals))
    watch_rewards(environment)
    return OldHosted(name, module, environment)


class OldHosted(Hosted):
    """An environment of verifiers' old stack, whose hooks are called one by one."""

    def __init__(self, name: str, module: ModuleType, environment: Any) -> None:
        self._name = name
        self._module = module
        self._environment = environment

    def facts(self) -> dict[str, Any]:
        tools = self._environment.tool_defs or []
        return {
            "name": re.sub(r"[^\w.-]", "-", self._name),
            "source": f"verifiers, {self._name}",
            "policy": "",
            "tools": [describe_tool(tool) for tool in tools],
            "repeatable": False,
            "user": "none",
            "definedAt": place_of(self._module.load_environment),
            "packages": packages_of(self._module),
        }

    async def splits(self) -> dict[str, Sequence[Any]]:
        environment = self._environment
        splits: dict[str, Sequence[Any]] = {}
        if environment.dataset is not None or environment.dataset_source is not None:
            splits["train"] = explained(self._name, environment.get_dataset)
        if environment.eval_dataset is not None or environment.eval_dataset_source is not None:
            splits["eval"] = explained(self._name, environment.get_eval_dataset)
        return splits

    def describe_task(self, task: Any) -> dict[str, Any]:
        fault = prompt_fault(task["prompt"])
        if fault is not None:
            raise BadEnvironment(fault)
        return {"instruction": text_of(task["prompt"][-1]["content"])}

    async def open(self, task: Any, context: Context) -> tuple[Attempt, dict[str, Any]]:
        attempt = Attempt(self._name, self._environment, dict(task))
        opening = await attempt.open()
        tools = attempt.state["tool_defs"]
        if tools != (self._environment.tool_defs or []):
            opening["tools"] = [describe_tool(tool) for tool in tools]
        return attempt, opening

    async def close(self) -> None:
        await self._environment._teardown()


def describe_tool(tool: Any) -> dict[str, Any]:
    """Returns a tool's definition as the model sees it."""
    return {"name": tool.name, "description": tool.description, "parameters": to_plain(tool.parameters)}


def _with_own_signals(work: Callable[[], Result]) -> Result:
    """Performs work, and restores the signal handlers that the constructors of environments replace."""
    handled = {number: signal.getsignal(number) or signal.SIG_DFL for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return work()
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)

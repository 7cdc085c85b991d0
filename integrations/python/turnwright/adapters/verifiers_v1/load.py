"""Loads environments of verifiers' new stack."""

from __future__ import annotations

import inspect
import re
from types import ModuleType
from typing import Any, Sequence

from ...environments.episode import Context
from ...environments.errors import BadEnvironment
from ...host.hosted import Hosted
from ..explained import explained
from ..verifiers import packages_of
from .attempt import Attempt
from .refusals import find_refusals, find_refusals_of_parts, seats_of
from .tools import Tools


def load(name: str, module: ModuleType, args: dict[str, Any]) -> Hosted:
    """Returns the environment of a package with a task set. Raises BadEnvironment with each reason not to play it."""
    from verifiers.v1.utils.loaders import env_config_type, environment_class, taskset_class

    taskset_type = explained(name, lambda: taskset_class(name))
    refusals = find_refusals(name, environment_class(name), taskset_type.task_type())
    if refusals:
        raise BadEnvironment("; ".join(refusals))
    given = dict(args)
    limit = given.pop("limit", None)
    config_type = env_config_type(name)
    (seat,) = seats_of(config_type)
    environment = explained(name, lambda: _create(name, config_type, seat, given))
    taskset = environment.taskset
    if not taskset.bounded and limit is None:
        raise BadEnvironment(f'{name} has endless tasks: give their number, as in --env-args \'{{"limit": 100}}\'')
    tasks = explained(name, lambda: list(taskset if limit is None else taskset.take(limit)))
    if not tasks:
        raise BadEnvironment(f"{name} has no tasks")
    shared = type(taskset).toolsets(taskset.config)
    toolsets = [*shared, *tasks[0].toolsets(tasks[0].config)]
    refusals = find_refusals_of_parts(name, toolsets, tasks[0].config)
    if refusals:
        raise BadEnvironment("; ".join(refusals))
    return NewHosted(name, module, environment, seat, tasks)


class NewHosted(Hosted):
    """An environment of verifiers' new stack, whose `Env.run()` waits for each reply of the engine outside."""

    def __init__(self, name: str, module: ModuleType, environment: Any, seat: str, tasks: list[Any]) -> None:
        self._name = name
        self._module = module
        self._environment = environment
        self._seat = seat
        self._tasks = tasks
        self._shared = Tools()
        self._tools: list[dict[str, Any]] = []

    async def prepare(self) -> None:
        taskset, first = self._environment.taskset, self._tasks[0]
        await self._shared.serve(type(taskset).toolsets(taskset.config))
        await self._environment.start()
        shown = Tools()
        await shown.serve(first.toolsets(first.config), first.data)
        shown.share(self._shared)
        self._tools = shown.describe()

    def facts(self) -> dict[str, Any]:
        return {
            "name": re.sub(r"[^\w.-]", "-", self._name),
            "source": f"verifiers, {self._name}",
            "policy": "",
            "tools": self._tools,
            "repeatable": False,
            "user": "none",
            "definedAt": f"{inspect.getsourcefile(type(self._environment.taskset))}:1",
            "packages": packages_of(self._module),
        }

    async def splits(self) -> dict[str, Sequence[Any]]:
        return {"train": self._tasks}

    def describe_task(self, task: Any) -> dict[str, Any]:
        data = task.data
        return {"instruction": data.prompt_text or data.description or data.name or ""}

    async def open(self, task: Any, context: Context) -> tuple[Attempt, dict[str, Any]]:
        attempt = Attempt(self._environment, self._seat, task, self._shared)
        try:
            opening = await attempt.open()
        except BaseException:
            await attempt.close()
            raise
        if opening["tools"] == self._tools:
            del opening["tools"]
        return attempt, opening

    async def close(self) -> None:
        await self._environment.stop()


def _create(name: str, config_type: Any, seat: str, args: dict[str, Any]) -> Any:
    """Returns an environment whose agent is a plain conversation in this process. Each argument goes to the task set's
    configuration if that has such a field, otherwise to the environment's.
    """
    from pydantic import ValidationError
    from verifiers.v1.utils.loaders import load_environment, taskset_config_type

    fields = taskset_config_type(name).model_fields
    of_taskset = {key: value for key, value in args.items() if key in fields}
    of_environment = {key: value for key, value in args.items() if key not in fields}
    plain = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}}
    raw = {**of_environment, "taskset": {"id": name, **of_taskset}, seat: {**plain, **of_environment.get(seat, {})}}
    try:
        return load_environment(config_type.model_validate(raw))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadEnvironment(f"{name} cannot be created with these arguments: {where}: {first['msg']}") from error

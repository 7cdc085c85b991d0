"""The reasons why an environment of verifiers' new stack cannot be played turn by turn. They are found before a run.
"""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Iterator, Sequence
from urllib.parse import urlsplit


def find_refusals(name: str, environment_type: type, task_type: type) -> list[str]:
    """Returns the reasons that the classes show, each with what to do. Empty if there are none."""
    from verifiers.v1.utils.loaders import default_harness_id, env_config_type

    found = list(_reasons_of_task(task_type))
    seats = seats_of(env_config_type(name))
    if len(seats) != 1:
        found.append(f"has {len(seats)} agents ({', '.join(seats)}): use the gateway")
    harnesses = {seat.harness.id for seat in seats.values() if seat.harness is not None} | {default_harness_id(name)}
    for harness in sorted(harnesses - {"null", "bash"}):
        found.append(f"plays through a harness of its own ({harness}): use the gateway")
    if any(seat.harness is not None and seat.harness.id == "bash" for seat in seats.values()):
        found.append("needs a container (the harness bash): use the gateway")
    return [f"{name} {reason}" for reason in dict.fromkeys(found)]


def seats_of(config_type: Any) -> dict[str, Any]:
    """Returns the defaults of the agents of an environment's configuration, by name."""
    from verifiers.v1.configs.agent import AgentConfig

    defaults = {name: field.default for name, field in config_type.model_fields.items()}
    return {name: default for name, default in defaults.items() if isinstance(default, AgentConfig)}


def _reasons_of_task(task_type: Any) -> Iterator[str]:
    from verifiers.v1 import Task
    from verifiers.v1.session import hook_boundary
    from verifiers.v1.trace import Trace

    if task_type.NEEDS_CONTAINER:
        yield f"needs a container ({task_type.__name__}): use the gateway"
    for hook in ("setup", "finalize", "stage_verifier"):
        function = getattr(task_type, hook)
        if function is not getattr(Task, hook) and "runtime" in inspect.signature(function).parameters:
            yield f"reads the runtime ({task_type.__name__}.{hook}): use the gateway"
    if task_type.score is not Task.score:
        yield f"has a score of its own ({task_type.__name__}.score): use the gateway"
    for kind in ("reward", "metric"):
        for function in _marked(task_type, kind):
            parameter = inspect.signature(function).parameters.get("runtime")
            if parameter is not None and parameter.default is parameter.empty:
                yield f"reads the runtime ({function.__name__}): use the gateway"
    for function in _marked(task_type, "intercept"):
        yield f"shows another history than was sampled ({function.__name__}): use the gateway"
    for function in _marked(task_type, "stop"):
        if hook_boundary(function, allow_trace=True) is not Trace:
            yield f"stops within a request ({function.__name__}): use the gateway"


def find_refusals_of_parts(name: str, toolsets: Sequence[Any], config: Any) -> list[str]:
    """Returns the reasons that the tools and the configuration of a task show."""
    from verifiers.v1 import JudgeConfig, Toolset

    found = []
    for toolset in toolsets:
        kind, placed = type(toolset), toolset.config
        if kind.register is not Toolset.register:
            found.append(f"serves its tools itself ({kind.__name__}.register): use the gateway")
        if getattr(placed, "url", None):
            found.append(f"has its tools at {placed.url} ({kind.__name__}): use the gateway")
        if getattr(placed, "colocated", False) or getattr(getattr(placed, "runtime", None), "type", "subprocess") != "subprocess":
            found.append(f"needs a container ({kind.__name__}): use the gateway")
    judges = [*config.judges, *(value for _, value in config if isinstance(value, JudgeConfig))]
    for judge in judges:
        if not os.environ.get(judge.api_key_var) and urlsplit(judge.base_url).hostname not in ("localhost", "127.0.0.1", "::1"):
            found.append(f"scores by a judge ({judge.model}) and has no key for it: set {judge.api_key_var}")
    return [f"{name} {reason}" for reason in dict.fromkeys(found)]


def _marked(kind: type, mark: str) -> list[Callable[..., Any]]:
    """Returns the methods of a class that a decorator has marked, sorted by name."""
    names = {name for base in kind.__mro__ for name, value in vars(base).items() if callable(value) and hasattr(value, mark)}
    return [getattr(kind, name) for name in sorted(names) if hasattr(getattr(kind, name), mark)]

"""Rewards of verifiers' rubrics. The library counts 0 for a reward function that throws. Here the score fails instead.
"""

from __future__ import annotations

import contextvars
import functools
import inspect
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from ..component_name import component_name

_failures: contextvars.ContextVar[list[BaseException] | None] = contextvars.ContextVar("failures", default=None)

#: The largest error of a sum of components, relative to one plus the sizes of all terms.
_TOLERANCE = 1e-6


@contextmanager
def failures_of_scoring() -> Iterator[list[BaseException]]:
    """Collects what the reward functions of one attempt throw."""
    failures: list[BaseException] = []
    token = _failures.set(failures)
    try:
        yield failures
    finally:
        _failures.reset(token)


def rubrics_of(rubric: Any) -> list[Any]:
    """Returns a rubric, and those of a group in order."""
    return [rubric, *(inner for one in getattr(rubric, "rubrics", []) for inner in rubrics_of(one))]


def environments_of(environment: Any) -> list[Any]:
    """Returns an environment, or the members of a group."""
    members = getattr(environment, "envs", None)
    if members is None:
        return [environment]
    return [inner for member in members for inner in environments_of(member)]


def watch_rewards(environment: Any) -> None:
    """Makes the reward functions of an environment keep what they throw."""
    for member in environments_of(environment):
        for rubric in rubrics_of(member.rubric):
            rubric.funcs[:] = [_watched(function) for function in rubric.funcs]


def _watched(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function(*args, **kwargs)
            if inspect.isawaitable(result):
                result = await result
            return float(result)
        except Exception as error:
            failures = _failures.get()
            if failures is not None:
                failures.append(error)
            raise

    watched.__name__ = getattr(function, "__name__", type(function).__name__)
    return watched


def describe_rewards(rubric: Any, reward: float, metrics: dict[str, float]) -> dict[str, Any]:
    """Returns the reward of a score, and its components: the functions' values and weights by name.

    Functions of one name count as one, as in verifiers. A rubric that scores in its own way has one component, `rubric`,
    beside its metrics.
    """
    weights: dict[str, float] = {}
    for one in rubrics_of(rubric):
        if not hasattr(one, "rubrics"):
            weights.update({function.__name__: float(weight) for function, weight in zip(one.funcs, one.weights)})
    components = {component_name(name, metrics): {"value": value, "weight": weights.get(name, 0.0)}
                  for name, value in metrics.items()}
    terms = [one["value"] * one["weight"] for one in components.values()]
    if abs(sum(terms) - reward) > _TOLERANCE * (1.0 + sum(map(abs, terms))):
        metric_parts = {name: {**one, "weight": 0.0} for name, one in components.items()}
        whole = "rubric"
        while whole in metric_parts:
            whole += "_reward"
        components = {**metric_parts, whole: {"value": reward, "weight": 1.0}}
    return {"reward": reward, **({"components": components} if components else {})}

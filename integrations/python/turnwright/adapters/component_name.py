"""Names of reward functions as names of components."""

from __future__ import annotations

from typing import Container

#: Names that mean the whole reward.
_WHOLE = ("reward", "total")


def component_name(function: str, others: Container[str]) -> str:
    """Returns the component's name for a reward function or metric. A name that means the whole reward gets `_function`
    until none of the others has it."""
    name = function
    while name in _WHOLE or (name != function and name in others):
        name += "_function"
    return name

"""Names of reward functions as names of components."""

from __future__ import annotations

from typing import Container

#: Names that mean the whole reward.
_WHOLE = ("reward", "total")


def component_name(function: str, others: Container[str]) -> str:
    """Returns the component's name for a reward function or metric. If the name is one for the whole reward,
    `_function` is appended until no other component has the name.
    """
    name = function
    while name in _WHOLE or (name != function and name in others):
        name += "_function"
    return name

"""Names of reward functions as names of components."""

from __future__ import annotations


def component_name(function: str) -> str:
    """Returns the component's name for a reward function or metric. `reward` and `total` mean the whole reward."""
    return f"{function}_function" if function in ("reward", "total") else function

"""How data sets name a task: by its index, or by its split and index."""

from __future__ import annotations

import operator
from typing import Any

from .play import split


def read_task(value: Any, split_name: str | None = None) -> tuple[str, int]:
    """Returns the split and index that `4`, `"4"`, `"test/4"` or a conversation that ends with one of them names.

    `split_name` is that of another column; without one, the split is TURNWRIGHT_SPLIT. Raises ValueError where no task
    is named.
    """
    named = value
    if isinstance(named, (list, tuple)) and named and isinstance(named[-1], dict):
        named = named[-1].get("content")
    if isinstance(named, str):
        before, slash, last = named.strip().rpartition("/")
        if last.isascii() and last.isdecimal() and bool(before) == bool(slash):
            return before or split_name or split(), int(last)
    elif hasattr(named, "__index__") and operator.index(named) >= 0:
        return split_name or split(), operator.index(named)
    raise ValueError(f"Cannot read {str(value)[:200]!r} as a task: expected an index such as 4, or test/4")

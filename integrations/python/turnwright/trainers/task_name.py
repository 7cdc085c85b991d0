"""Names of tasks in data sets: an index, or a split and an index."""

from __future__ import annotations

import operator
from typing import Any

from .play import split


def read_task(value: Any, split_name: str | None = None) -> tuple[str, int]:
    """Returns the split and index that `4`, `"4"`, `"test/4"` or a conversation that ends with one of them.

    `split_name` is the value of another column. The default is TURNWRIGHT_SPLIT. Raises ValueError if no task
    is named.
    """
    named = _last_text(value)
    if isinstance(named, str):
        before, slash, last = named.strip().rpartition("/")
        if last.isascii() and last.isdecimal() and bool(before) == bool(slash):
            return before or split_name or split(), int(last)
    elif hasattr(named, "__index__") and operator.index(named) >= 0:
        return split_name or split(), operator.index(named)
    raise ValueError(f"Cannot read {str(value)[:200]!r} as a task: expected an index such as 4, or test/4")


def _last_text(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and value and isinstance(value[-1], dict):
        message: dict[str, Any] = value[-1]
        return message.get("content")
    return value

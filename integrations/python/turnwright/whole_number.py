"""Whole numbers from callers, including those of numpy and torch."""

from __future__ import annotations

import operator
from typing import Any


def whole_number(name: str, value: Any) -> int:
    """Returns the value as Python's own integer. Raises TypeError with the name if it is not a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"Cannot use {name}={value!r}: expected a whole number") from None

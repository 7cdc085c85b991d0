"""Results of Python code as JSON."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

#: The longest result, in characters: a line of the protocol holds at most 16 MiB.
MAX_CHARACTERS = 4 * 1024 * 1024


def to_plain(value: Any) -> Any:
    """Returns the JSON-able form of a value that `json` does not write by itself. Raises TypeError if the value has
    none.
    """
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        return value.item()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form")


_shown = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=to_plain)


def shown_text(value: Any) -> str:
    """Returns the text that the model reads: a text as it is, other values as JSON.

    Raises ValueError or TypeError for values that JSON lacks.
    """
    return value if isinstance(value, str) else _shown.encode(value)

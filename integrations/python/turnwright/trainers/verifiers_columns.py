"""verifiers: the side columns of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers.v1.graph import MessageNode

from ..attempt import Attempt
from .column_forms import columns_of, copied_end, ragged

# verifiers before 0.4.0 has no field for kept tokens.
COLUMNS: list[str] = [name for name, field in (("routedExperts", "routed_experts"), ("keptTokens", "sampling_mask"))
                      if field in MessageNode.model_fields]


def columns_adder(attempt: Attempt, row: dict[str, Any]) -> Callable[[int, int, bool], dict[str, Any]]:
    """Returns a function that gives the columns of a node. The last id of a branch has a copy of the routes before it."""
    found = columns_of(attempt, row)
    routes, sets = found.get("routedExperts"), found.get("keptTokens")
    end = len(row["lossMask"]) - row["lossMask"][::-1].index(1)
    whole = routes is not None and copied_end(routes[:end - 1])

    def add(first: int, last: int, sampled: bool) -> dict[str, Any]:
        own = {} if routes is None else {"routed_experts": whole[first:last]}
        if sets is None or not sampled:
            return own
        from verifiers.v1.types import SamplingMask

        ids, offsets = ragged(sets, first, last)
        return {**own, "sampling_mask": SamplingMask(ids=ids, counts=offsets[1:] - offsets[:-1])}

    return add

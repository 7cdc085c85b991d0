"""SkyRL: the side columns of its output."""

from __future__ import annotations

from collections.abc import Sequence

from ..attempt import Attempt
from .column_forms import columns_of, expert_type, support, token_array


def columns_of_rows(attempts: Sequence[Attempt]) -> dict[str, list]:
    """Returns routes with a row for each id but the last, and the support of each id of the response."""
    output: dict[str, list] = {}
    for attempt in attempts:
        for row, response in zip(attempt.trained_rows, attempt.responses()):
            found, start, end = columns_of(attempt, row), len(response.prompt_ids), len(response.ids)
            if "routedExperts" in found:
                routes = token_array(found["routedExperts"], expert_type(attempt, ("uint8", "int16")), end - 1)
                output.setdefault("rollout_expert_indices", []).append(routes)
            if "keptTokens" in found and attempt.columns is not None:
                width = attempt.columns.specs["keptTokens"]["maxCount"]
                output.setdefault("rollout_sample_support", []).append(support(found["keptTokens"], start, end, width))
    return output

"""Attempts with several rows: the settings with which a trainer counts an attempt once, and group statistics."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ..attempt import Attempt, Unfit

log: logging.Logger = logging.getLogger("turnwright")
_said: set[str] = set()


def require(attempt: Attempt, trainer: str, remedies: Sequence[str]) -> None:
    """Raises Unfit with the remedies, such as `set --flag value`, if there are any and the attempt has several rows.
    """
    if remedies and attempt.row_count > 1:
        raise Unfit(f"Cannot hand the {attempt.row_count} rows of {attempt.rollout_id} to {trainer} as one attempt: "
                    + "; ".join(remedies))


def warn_once(topic: str, text: str) -> None:
    """Warns on the first call with this topic in the process."""
    if topic not in _said:
        _said.add(topic)
        log.warning("%s", text)


def group_advantages(rewards: Sequence[float], *, over_std: bool, epsilon: float = 1e-6) -> list[float]:
    """Returns each attempt's reward minus the group's mean, divided by the sample standard deviation with `over_std`.

    `epsilon` is added to the deviation. All advantages are 0 in a group of one attempt.
    """
    mean = sum(rewards) / len(rewards)
    squares = sum((reward - mean) ** 2 for reward in rewards)
    scale = (squares / max(1, len(rewards) - 1)) ** 0.5 + epsilon if over_std else 1.0
    return [(reward - mean) / scale for reward in rewards]

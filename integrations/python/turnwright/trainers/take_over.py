"""What a trainer's process does that announces versions: its first takes the run over from one that is gone."""

from __future__ import annotations

from ..client import Client
from .run_name import RUN

_taken: set[str] = set()


def announce(client: Client, version: int, weights: str | None = None) -> None:
    """Announces a version, for the one process of a run that does. Before its first, what an earlier process of
    the same TURNWRIGHT_RUN had asked for is cleared; that version may be a lower one, as of a checkpoint."""
    is_first = RUN not in _taken
    if is_first:
        client.clear(RUN)
    client.announce(version, weights, restart=is_first)
    _taken.add(RUN)

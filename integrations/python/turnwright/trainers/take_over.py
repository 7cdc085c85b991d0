"""What a trainer's process does that announces versions: its first takes the run over from one that is gone."""

from __future__ import annotations

from ..client import Client
from .run_name import RUN


class Versions:
    """Announces the versions of one training, in the one process of a run that does.

    Before the first, what an earlier process of the same TURNWRIGHT_RUN had asked for is cleared; that version may be a
    lower one, as of a checkpoint.
    """

    def __init__(self) -> None:
        self._is_first = True

    def announce(self, client: Client, version: int, weights: str | None = None) -> None:
        """Has the engine load the weights, as this version."""
        if self._is_first:
            client.clear(RUN)
        client.announce(version, weights, restart=self._is_first)
        self._is_first = False

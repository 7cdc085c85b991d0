"""Announces versions. The first announcement takes the run over from an earlier process."""

from __future__ import annotations

from ..client import Client
from .run_name import RUN


class Versions:
    """Announces the versions of one training. Only one process of a run may use it.

    The first announcement clears the requests of earlier processes with the same TURNWRIGHT_RUN. Its version may be
    lower than the current one, for example that of a checkpoint.
    """

    def __init__(self) -> None:
        self._is_first = True

    def announce(self, client: Client, version: int, weights: str | None = None) -> None:
        """Makes the engine load the weights as this version."""
        if self._is_first:
            client.clear(RUN)
        client.announce(version, weights, restart=self._is_first)
        self._is_first = False

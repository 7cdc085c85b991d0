"""Process-wide random numbers, kept apart for each episode."""

from __future__ import annotations

import random
import sys
from typing import Any


class Randomness:
    """The state of `random` and of numpy's own generator during an episode's calls."""

    def __init__(self, seed: int) -> None:
        self._states: dict[str, Any] = {}
        self._outer: dict[str, Any] = {}
        self._seed = seed

    def __enter__(self) -> None:
        self._outer = _read()
        if self._states:
            _write(self._states)
        else:
            random.seed(self._seed)
            numpy = sys.modules.get("numpy")
            if numpy is not None:
                numpy.random.seed(self._seed % 2**32)

    def __exit__(self, *_: object) -> None:
        self._states = _read()
        _write(self._outer)


def _read() -> dict[str, Any]:
    numpy = sys.modules.get("numpy")
    states: dict[str, Any] = {"random": random.getstate()}
    return states if numpy is None else {**states, "numpy": numpy.random.get_state()}


def _write(states: dict[str, Any]) -> None:
    random.setstate(states["random"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(states["numpy"])

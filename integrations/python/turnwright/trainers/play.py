"""Shared by all shims: the connection to the service, and scored attempts."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from ..attempt import Attempt
from ..client import Client
from .one_play import Play


def connect() -> Client:
    """Returns the client for TURNWRIGHT_URL and TURNWRIGHT_TOKEN."""
    return Client(os.environ.get("TURNWRIGHT_URL") or "http://127.0.0.1:8799", os.environ.get("TURNWRIGHT_TOKEN") or None)


def split() -> str:
    """Returns the split of the training tasks."""
    return os.environ.get("TURNWRIGHT_SPLIT") or "train"


def sampling_of(parameters: Mapping[str, Any] | object | None) -> dict[str, float]:
    """Translates a trainer's sampling parameters to the service's names. Leaves out all others."""
    names = {"temperature": "temperature", "top_p": "topP", "top_k": "topK", "min_p": "minP"}
    given: Mapping[str, Any] = parameters if isinstance(parameters, Mapping) else {
        name: getattr(parameters, name, None) for name in names}
    known = {ours: given.get(theirs) for theirs, ours in names.items()}
    # For all tokens, trainers use -1, 0 or None.
    return {name: value for name, value in known.items()
            if value is not None and not (name == "topK" and value <= 0)}


def play_scored(client: Client, *, task: int, samples: int = 1, seed: int = 0,
                sampling: dict[str, float] | None = None, split_name: str | None = None) -> list[Attempt]:
    """Returns scored attempts at a task, in the order of their numbers. See `Play`."""
    return Play(client, split=split_name or split(), task=task, samples=samples, seed=seed, sampling=sampling).scored()


def play_all(plays: Sequence[Play]) -> list[list[Attempt]]:
    """Runs plays concurrently, and returns their scored attempts. If a play fails, the others are cancelled."""
    try:
        for play in plays:
            play.begin()
        return [play.scored() for play in plays]
    except BaseException:
        for play in plays:
            play.give_up()
        raise

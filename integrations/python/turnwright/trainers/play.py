"""What all shims share: the service that the environment names, and attempts that were scored."""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

from ..attempt import Attempt
from ..client import Client
from .one_play import Play


def connect() -> Client:
    """The client that the environment names."""
    return Client(os.environ.get("TURNWRIGHT_URL") or "http://127.0.0.1:8799", os.environ.get("TURNWRIGHT_TOKEN") or None)


def split() -> str:
    """Which tasks are trained on."""
    return os.environ.get("TURNWRIGHT_SPLIT") or "train"


def sampling_of(parameters: Mapping[str, Any] | object | None) -> dict[str, float]:
    """A trainer's sampling parameters in the service's names; what the service has no name for stays out."""
    names = {"temperature": "temperature", "top_p": "topP", "top_k": "topK", "min_p": "minP"}
    given: Mapping[str, Any] = parameters if isinstance(parameters, Mapping) else {
        name: getattr(parameters, name, None) for name in names}
    known = {ours: given.get(theirs) for theirs, ours in names.items()}
    # Trainers say "all" as -1, 0 or None.
    return {name: value for name, value in known.items()
            if value is not None and not (name == "topK" and value <= 0)}


def play_scored(client: Client, *, task: int, samples: int = 1, seed: int = 0,
                sampling: dict[str, float] | None = None, split_name: str | None = None) -> list[Attempt]:
    """So many scored attempts at a task, in the order of their places. See `Play`."""
    return Play(client, split=split_name or split(), task=task, samples=samples, seed=seed, sampling=sampling).scored()


def play_all(plays: Sequence[Play]) -> list[list[Attempt]]:
    """The scored attempts of plays beside each other. Where one of them fails, the others are cancelled."""
    try:
        for play in plays:
            play.begin()
        return [play.scored() for play in plays]
    except BaseException:
        for play in plays:
            play.give_up()
        raise

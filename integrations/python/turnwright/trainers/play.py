"""What all shims share: attempts that were scored, asked for again where they were not."""

from __future__ import annotations

import os
import uuid
from typing import Any

from ..attempt import Attempt, Unfit
from ..client import Client
from .run_name import RUN

REFILLS = 4


def connect() -> Client:
    """The client that the environment names."""
    return Client(os.environ.get("TURNWRIGHT_URL", "http://127.0.0.1:8799"), os.environ.get("TURNWRIGHT_TOKEN"))


def split() -> str:
    """Which tasks are trained on."""
    return os.environ.get("TURNWRIGHT_SPLIT", "train")


def sampling_of(parameters: dict[str, Any] | None) -> dict[str, float]:
    """A trainer's sampling parameters in the service's names; what the service has no name for stays out."""
    names = {"temperature": "temperature", "top_p": "topP", "top_k": "topK", "min_p": "minP"}
    known = {ours: (parameters or {}).get(theirs) for theirs, ours in names.items()}
    # Trainers say "all" as -1, 0 or None.
    return {name: value for name, value in known.items()
            if value is not None and not (name == "topK" and value <= 0)}


def play_scored(client: Client, *, task: int, samples: int = 1, seed: int = 0,
                sampling: dict[str, float] | None = None, split_name: str | None = None,
                told: dict[str, Any] | None = None) -> list[Attempt]:
    """So many scored attempts at a task. One that failed is played again, up to REFILLS times: it is no 0.

    `told` is told the batch that is played, and stops further tries once it has `is_over`. Raises Unfit where
    there are still too few.
    """
    told, key = {} if told is None else told, f"{RUN}/{uuid.uuid4().hex}"
    scored: list[Attempt] = []
    for refill in range(REFILLS + 1):
        told["batch"] = client.submit(key=f"{key}/{refill}", split=split_name or split(), tasks=[task],
                                      samples=samples - len(scored), seed=seed + 1_000_003 * refill,
                                      sampling=sampling).batch
        for group in client.groups(told["batch"]):
            scored += [attempt for attempt in group.attempts if attempt.is_scored]
            # They are the trainer's from here on: one that starts anew draws anew.
            client.acknowledge(group.cursor, told["batch"])
        if len(scored) == samples:
            return scored
        if told.get("is_over"):
            break
    raise Unfit(f"Task {task}: {samples - len(scored)} of {samples} attempts were not scored in {refill + 1} tries")

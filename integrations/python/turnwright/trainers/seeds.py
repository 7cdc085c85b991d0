"""Seeds of attempts: derived from a trainer's name for them, or random."""

from __future__ import annotations

import hashlib
import json
import uuid

# Small enough to add an attempt's place and repetitions and stay below 2^53.
SEEDS = 2**48
RETRY_STEP = 1_000_003


def seed_of(*name: str | int) -> int:
    """Returns the seed of a name, the same in every process."""
    digest = hashlib.sha256(json.dumps(name, default=str).encode()).digest()
    return int.from_bytes(digest[:8], "big") % SEEDS


def drawn_seed() -> int:
    """Returns a random seed, for trainers that name no step and no place."""
    return uuid.uuid4().int % SEEDS

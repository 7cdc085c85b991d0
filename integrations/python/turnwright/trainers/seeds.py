"""Seeds of attempts: by a name that a trainer gives them, or drawn."""

from __future__ import annotations

import hashlib
import json
import uuid

# Small enough for an attempt's place and its further tries to be added below 2^53.
SEEDS = 2**48
RETRY_STEP = 1_000_003


def seed_of(*name: str | int) -> int:
    """Returns the seed that goes with a name: the same in every process."""
    digest = hashlib.sha256(json.dumps(name, default=str).encode()).digest()
    return int.from_bytes(digest[:8], "big") % SEEDS


def drawn_seed() -> int:
    """Returns a seed that no other attempt has, for trainers that tell no step and no place."""
    return uuid.uuid4().int % SEEDS

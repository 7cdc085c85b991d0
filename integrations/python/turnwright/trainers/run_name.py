"""How the names of runs stand in the keys of batches."""

from __future__ import annotations

import os
import uuid


def in_keys(run: str) -> str:
    """A run's name as keys begin with it: without a slash, so that no other run's name begins with it and one."""
    return run.replace("%", "%25").replace("/", "%2F")


# Begins the keys of the batches; whoever starts a run anew clears what the one before had asked for by it.
RUN = in_keys(os.environ.get("TURNWRIGHT_RUN") or uuid.uuid4().hex[:12])

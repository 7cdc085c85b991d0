"""Names of runs in the keys of batches."""

from __future__ import annotations

import os
import uuid


def in_keys(run: str) -> str:
    """Returns a run's name for keys. It has no slash, so that `NAME/` is the prefix of this run only."""
    return run.replace("%", "%25").replace("/", "%2F")


# The prefix of all keys. A restarted run clears its earlier requests by it.
RUN = in_keys(os.environ.get("TURNWRIGHT_RUN") or uuid.uuid4().hex[:12])

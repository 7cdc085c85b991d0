"""The protocol's descriptors. This module is imported first, so that no other code can write to the descriptors."""

from __future__ import annotations

import os
import sys

# Copies are not inherited by programs (PEP 446).
IN = os.dup(0)
OUT = os.dup(1)

_null = os.open(os.devnull, os.O_RDONLY)
os.dup2(_null, 0)
os.close(_null)
# print(), C code and child processes write to stderr.
os.dup2(2, 1)
sys.stdin = open(0, closefd=False)
sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)


def _close_in_child() -> None:
    for descriptor in (IN, OUT):
        try:
            os.close(descriptor)
        except OSError:
            pass


# A forked child must not speak.
os.register_at_fork(after_in_child=_close_in_child)

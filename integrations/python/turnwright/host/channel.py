"""Messages: one JSON object a line, in ASCII."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from ..environments.plain import to_plain
from . import descriptors

#: The longest line, in bytes.
MAX_LINE = 16 * 1024 * 1024

_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=to_plain)
_lock = threading.Lock()

#: True while a line is written. No signal may interrupt that.
writing = False


class TooLong(Exception):
    """Raised for a message that is longer than a line may be."""


def encode(message: dict[str, Any]) -> bytes:
    """Returns the line of a message, with U+FFFD for each half of a surrogate pair.

    Raises ValueError or TypeError for values that JSON lacks, and TooLong.
    """
    line = _encoder.encode(message)
    if len(line) >= MAX_LINE:
        raise TooLong(f"it has {len(line):,} bytes, expected at most {MAX_LINE:,}")
    if "\\ud" in line:
        line = _without_lone_surrogates(line)
    return line.encode("ascii") + b"\n"


def _without_lone_surrogates(line: str) -> str:
    text = json.dumps(json.loads(line), ensure_ascii=False)
    mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return line if mended == text else _encoder.encode(json.loads(mended))


def send(message: dict[str, Any]) -> None:
    """Writes a complete message."""
    write(encode(message))


def send_if_free(message: dict[str, Any]) -> None:
    """Writes a message unless another one is being written. For signal handlers, which must not wait."""
    if _lock.acquire(blocking=False):
        try:
            _write(encode(message))
        finally:
            _lock.release()


def write(line: bytes) -> None:
    """Writes a complete line. Other threads wait meanwhile."""
    with _lock:
        _write(line)


def _write(line: bytes) -> None:
    global writing
    writing = True
    try:
        view = memoryview(line)
        while view:
            view = view[os.write(descriptors.OUT, view) :]
    finally:
        writing = False

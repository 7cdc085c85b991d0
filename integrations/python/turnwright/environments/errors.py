"""Errors of environments."""

from __future__ import annotations

from typing import NoReturn


class Refused(Exception):
    """Raised for a mistake of the model. The call changes nothing, and the model reads the message."""


class BadEnvironment(Exception):
    """An environment that cannot be played. The message names the file, the line and the remedy."""


class BadResult(Exception):
    """A result that cannot be used. `code` is Turnwright's code of the failure, and `place` is `FILE:LINE`."""

    def __init__(self, code: str, message: str, place: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.place = place


def refuse(why: str) -> NoReturn:
    """Answers a mistake of the model: raises Refused. The call's changes of the state are undone."""
    raise Refused(why)

"""Errors of an environment's code, with the line of that code that caused each."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from types import FrameType, ModuleType
from typing import Any, Callable

from ..environments.errors import BadResult

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_INSTALLED = {"site-packages", "dist-packages"}
_LIBRARIES = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")})

#: Installed files and folders of the environment itself. Errors name a line in them rather than one of a library.
_claimed: list[str] = []


def claim(module: ModuleType) -> None:
    """Marks an installed module as the environment's own code, which errors name."""
    for place in [*getattr(module, "__path__", []), getattr(module, "__file__", None)]:
        if place is not None:
            _claimed.append(os.path.realpath(place))


def describe(error: BaseException) -> dict[str, Any]:
    """Returns an error's type, message, file, line and traceback (its last 8,000 characters)."""
    return {
        "type": type(error).__name__,
        "message": _written(lambda: str(error), "its message cannot be written")[:2000],
        **_place(error),
        "traceback": _written(lambda: "".join(traceback.format_exception(error)), "")[-8000:],
    }


def _written(write: Callable[[], str], otherwise: str) -> str:
    """Returns a text about an error without lone surrogates, or `otherwise` if the error's own code fails."""
    try:
        return write().encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:
        return otherwise


def _place(error: BaseException) -> dict[str, Any]:
    if isinstance(error, BadResult):
        file, _, line = (error.place or "").rpartition(":")
        return {"file": file, "line": int(line)} if file else {}
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return {"file": error.filename, "line": error.lineno}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _says_nothing(frame.filename)]
    own = [frame for frame in frames if _is_own(os.path.realpath(frame.filename))]
    if frames:
        last = (own or frames)[-1]
        return {"file": last.filename, "line": last.lineno}
    inner = error.__cause__ or error.__context__
    return _place(inner) if inner else {}


def place_of_frame(frame: FrameType | None) -> dict[str, Any]:
    """Returns the file and line of the innermost code that is neither Python's nor of this package."""
    while frame is not None and _says_nothing(frame.f_code.co_filename):
        frame = frame.f_back
    return {} if frame is None else {"file": frame.f_code.co_filename, "line": frame.f_lineno}


def _says_nothing(file: str) -> bool:
    """True for a file of this package or of Python itself."""
    return file.startswith((_PACKAGE, "<")) or (os.path.realpath(file).startswith(_STANDARD) and not _INSTALLED & set(file.split(os.sep)))


def _is_own(file: str) -> bool:
    if any(file == place or file.startswith(place + os.sep) for place in _claimed):
        return True
    return not file.startswith(_LIBRARIES)


def missing_package(error: BaseException) -> str | None:
    """Returns the name of the package that an import lacks, or None."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    package = error.name.partition(".")[0]
    return package if package not in sys.stdlib_module_names else None

"""Failures to load an environment of a library, in words that say what to do."""

from __future__ import annotations

import re
from typing import Callable, Iterator, TypeVar

from ..environments.errors import BadEnvironment

Result = TypeVar("Result")

#: Libraries whose errors say that data could not be fetched.
_FETCHING = ("requests", "httpx", "urllib3", "aiohttp", "huggingface_hub")


def explained(name: str, work: Callable[[], Result]) -> Result:
    """Performs a part of the loading.

    Raises:
        BadEnvironment: A key is missing, or data could not be fetched.
        Exception: Another failure, without the errors in which the library wrapped it: they hide the line.
    """
    try:
        return work()
    except BadEnvironment:
        raise
    except Exception as error:
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, ModuleNotFoundError):
                raise cause from None
            _raise_for_key(name, cause)
        fetching = next((cause for cause in causes if _is_of_fetching(cause)), None)
        if fetching is not None:
            found = re.search(r"['\"]([\w.-]+/[\w.-]+)['\"]", " ".join(map(str, causes)))
            what = found[1] if found else "its data set"
            why = " ".join(str(fetching).split())[:300]
            raise BadEnvironment(
                f"{name} could not load its data ({type(fetching).__name__}: {why}): fetch {what} where there is network"
            ) from error
        raise causes[-1] from None


def _raise_for_key(name: str, error: BaseException) -> None:
    kind = type(error).__name__
    if kind == "MissingKeyError":
        raise BadEnvironment(f"{name} has no key: set {', '.join(getattr(error, 'keys', []))}") from error
    if kind == "OpenAIError" and "api_key" in str(error):
        raise BadEnvironment(f"{name} scores by a judge and has no key for it: set OPENAI_API_KEY") from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Returns an error, and what it was raised from, to the first one."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _is_of_fetching(error: BaseException) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in _FETCHING or isinstance(error, ConnectionError) or type(error).__name__ == "DatasetNotFoundError"

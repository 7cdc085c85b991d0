"""Errors about an environment of a library that cannot be loaded, each with its remedy."""

from __future__ import annotations

import difflib
import re
from typing import Callable, Iterable, Iterator, TypeVar

from ..environments.errors import BadEnvironment

Result = TypeVar("Result")

#: Libraries whose errors say that data could not be fetched.
_FETCHING = ("requests", "httpx", "urllib3", "aiohttp", "huggingface_hub")


def explained(name: str, work: Callable[[], Result]) -> Result:
    """Performs a part of the loading.

    Raises:
        BadEnvironment: An API key is missing, or data could not be fetched.
        Exception: Another failure, without the errors in which the library wrapped it, because they hide the failing
        line.
    """
    try:
        return work()
    except BadEnvironment:
        raise
    except Exception as error:
        seen = list(_behind(error, also_handled=True))
        # The library's own errors around the first one repeat its text.
        for one in reversed(seen):
            if isinstance(one, ModuleNotFoundError):
                raise one from None
            _raise_for_key(name, one)
            _raise_for_words(name, one)
        fetching = next((one for one in seen if _is_of_fetching(one)), None)
        if fetching is not None:
            found = re.search(r"['\"]([\w.-]+/[\w.-]+)['\"]", " ".join(map(str, seen)))
            what = found[1] if found else "its data set"
            why = " ".join(str(fetching).split())[:300]
            raise BadEnvironment(
                f"{name} could not load its data ({type(fetching).__name__}: {why}): fetch {what} where there is network"
            ) from error
        raise list(_behind(error, also_handled=False))[-1] from None


def unknown_name(library: str, name: str, names: Iterable[str]) -> BadEnvironment:
    """Returns the error for a name that a library does not have, with the names of the library that are similar."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    hint = f", did you mean {' or '.join(near)}?" if near else ""
    return BadEnvironment(f"{library} has no environment {name}{hint}")


def _raise_for_key(name: str, error: BaseException) -> None:
    kind, text = type(error).__name__, str(error)
    if kind == "MissingKeyError":
        raise BadEnvironment(f"{name} has no key: set {', '.join(getattr(error, 'keys', []))}") from error
    if kind == "OpenAIError" and "api_key" in text:
        raise BadEnvironment(f"{name} scores by a judge and has no key for it: set OPENAI_API_KEY") from error
    variable = re.search(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN)\b", text)
    if variable is not None:
        raise BadEnvironment(f"{name} has no key: set {variable[0]}") from error


def _raise_for_words(name: str, error: BaseException) -> None:
    """Recognizes nltk's error for a list of words that it would download."""
    found = re.search(r"Resource (?:\x1b\[\d+m|')?(\w+)(?:\x1b\[0m|')? not found", str(error))
    if isinstance(error, LookupError) and found is not None:
        raise BadEnvironment(
            f"{name} could not load its data (nltk's {found[1]}): run `python -m nltk.downloader {found[1]}` where there is network"
        ) from error


def _behind(error: BaseException, *, also_handled: bool) -> Iterator[BaseException]:
    """Returns an error and the errors that it was raised from, back to the first one. With `also_handled`, also the
    errors that were being handled when each was raised.
    """
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        handled = seen.__context__ if also_handled else None
        seen = seen.__cause__ or handled


def _is_of_fetching(error: BaseException) -> bool:
    module = type(error).__module__.partition(".")[0]
    return module in _FETCHING or isinstance(error, ConnectionError) or type(error).__name__ == "DatasetNotFoundError"

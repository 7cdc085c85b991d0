"""The requests of the protocol."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import sysconfig
import zlib
from functools import partial
from pathlib import Path
from typing import Any, Callable, Sequence

from ..environments.episode import Context
from ..environments.errors import BadEnvironment
from ..environments.load import load_environment
from . import channel
from .hosted import Hosted, host_environment

#: The number of tasks of a split that identify it.
_HASHED_TASKS = 100


class Requests:
    """Performs requests on one environment."""

    def __init__(self, with_progress: Callable[[Callable[[], Any]], Any]) -> None:
        self._with_progress = with_progress
        self._hosted: Hosted | None = None
        self._splits: dict[str, Sequence[Any]] = {}
        self._episodes: dict[str, Any] = {}

    def perform(self, do: str, given: dict[str, Any]) -> Any:
        """Performs a request. Returns the answer, or an awaitable of the answer."""
        if do == "call":
            return self._episodes[given["episode"]].call(given["name"], given["arguments"])
        if do == "turn":
            usage = given.get("usage")
            return self._episodes[given["episode"]].turn(given["message"], finish=given.get("finish"), usage=usage)
        if do == "score":
            return self._episodes[given["episode"]].score(given["outcome"])
        handlers: dict[str, Callable[..., Any]] = {
            "load": self._load, "tasks": self._tasks, "open": self._open, "say": self._say, "close": self._close,
        }
        if do not in handlers:
            raise BadEnvironment(f'there is no request "{do}"')
        return handlers[do](**given)

    async def close_all(self) -> None:
        """Closes the episodes that are still open, and the environment."""
        closing: list[Callable[[], Any]] = [partial(self._close, name) for name in self._episodes]
        if self._hosted is not None:
            closing.append(self._hosted.close)
        for close in closing:
            try:
                await close()
            except Exception:
                # The process ends: their time is over.
                pass

    async def _load(self, env: str, args: dict[str, Any]) -> dict[str, Any]:
        modules = set(sys.modules)
        hosted = host_environment(self._with_progress(lambda: load_environment(env, args)))
        await hosted.prepare()
        self._splits = await hosted.splits()
        for split, tasks in self._splits.items():
            if len(tasks) == 0:
                raise BadEnvironment(f"split {split} of {env} has no tasks")
        self._hosted = hosted
        lengths = {split: len(tasks) for split, tasks in self._splits.items()}
        files = {file: _hash_of_file(file) for file in _own_files(modules)}
        return {**hosted.facts(), "kind": hosted.kind, "splits": lengths, "files": files, "tasksHash": self._hash_tasks()}

    def _hash_tasks(self) -> str:
        """Returns a hash of the first tasks of each split: another process of the run must have the same hash."""
        found = hashlib.sha256()
        for split, tasks in self._splits.items():
            for index in range(min(_HASHED_TASKS, len(tasks))):
                found.update(self._describe(split, index)[1])
        return found.hexdigest()

    def _tasks(self, split: str, start: int, stop: int) -> dict[str, Any]:
        """Returns the tasks from `start` on, as many as fit into one answer, but at least one."""
        found: list[dict[str, Any]] = []
        length = 0
        for index in range(start, stop):
            described, written = self._describe(split, index)
            length += len(written)
            if found and length > channel.MAX_LINE // 2:
                break
            found.append(described)
        return {"tasks": found}

    def _describe(self, split: str, index: int) -> tuple[dict[str, Any], bytes]:
        """Returns a task as it appears in the answer of `tasks`, and its JSON line. Raises BadEnvironment if the task
        cannot be used.
        """
        assert self._hosted is not None
        place = self._hosted.place
        where = f'{place}{": " if place else ""}task {index} of split "{split}"'
        try:
            described = self._hosted.describe_task(self._splits[split][index])
            return described, channel.encode(described)
        except BadEnvironment as error:
            raise BadEnvironment(f"{where}: {error}") from error
        except (TypeError, ValueError, RecursionError, channel.TooLong) as error:
            raise BadEnvironment(f"{where} cannot be written as JSON: {error}, expected texts, numbers, lists and dicts") from error

    async def _open(self, episode: str, split: str, index: int) -> dict[str, Any]:
        assert self._hosted is not None
        # A task's seed: all attempts at it begin alike.
        seed = zlib.crc32(f"{split}/{index}".encode())
        opened, answer = await self._hosted.open(self._splits[split][index], Context(episode, seed))
        self._episodes[episode] = opened
        return answer

    async def _say(self, split: str, index: int, seed: int, said: list[str]) -> dict[str, Any]:
        assert self._hosted is not None
        return await self._hosted.say(self._splits[split][index], said, seed)

    async def _close(self, episode: str) -> dict[str, Any]:
        opened = self._episodes.pop(episode, None)
        if opened is not None:
            closed = opened.close()
            if inspect.isawaitable(closed):
                await closed
        return {}


def _hash_of_file(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return ""


def _own_files(before: set[str]) -> list[str]:
    """Returns the files of the modules that the environment imported, except those of installed packages."""
    files = []
    for name in sys.modules.keys() - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and not _is_installed(file):
            files.append(os.path.abspath(file))
    return sorted(files)


def _is_installed(file: str) -> bool:
    real = os.path.realpath(file)
    return "site-packages" in real or "dist-packages" in real or real.startswith(_OWN)


_OWN = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.path.dirname(__file__)))
)

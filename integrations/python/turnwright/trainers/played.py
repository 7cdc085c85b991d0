"""Plays without holding up an event loop, and a queue that may be left."""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ..attempt import Attempt
from .one_play import Play

# Plays that wait at once in one process; each holds a stream of the service.
MAX_PLAYS = 256


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    # One for each process, as a fork has none of the threads. Apart from the loop's own threads, where a cancellation would wait for plays to end.
    return ThreadPoolExecutor(MAX_PLAYS, "turnwright")


async def played(play: Play) -> list[Attempt]:
    """Returns the scored attempts. Where the caller is cancelled, so is what is played."""
    playing = _threads(os.getpid()).submit(play.scored)
    try:
        return await asyncio.wrap_future(playing)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.to_thread(_end, play, playing))
        raise


def _end(play: Play, playing: Future[list[Attempt]]) -> None:
    play.give_up()
    if not playing.cancelled():
        wait([playing], timeout=10)


async def played_once(client: Any, **asked: Any) -> Attempt:
    """Returns one scored attempt at a task; `asked` is what `Play` takes."""
    (attempt,) = await played(Play(client, **asked))
    return attempt


def put(buffer: queue.Queue[Any], item: Any, stopped: threading.Event) -> None:
    """Puts an item where there is room for it, or leaves it where its reader has stopped."""
    while not stopped.is_set():
        try:
            return buffer.put(item, timeout=0.2)
        except queue.Full:
            continue

"""Plays without blocking an event loop, and a queue with a reader that may stop."""

from __future__ import annotations

import asyncio
import functools
import os
import queue
import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ..attempt import Attempt
from .one_play import Play

# Concurrent plays of one process. Each has an open stream of the service.
MAX_PLAYS = 256


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    # One a process, as a fork has no threads. Not the loop's own threads: there a cancellation would wait for plays.
    return ThreadPoolExecutor(MAX_PLAYS, "turnwright")


async def played(play: Play) -> list[Attempt]:
    """Returns the scored attempts. If the caller is cancelled, cancels the play."""
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
    """Returns one scored attempt at a task. `asked` are the arguments of `Play`."""
    (attempt,) = await played(Play(client, **asked))
    return attempt


async def all_played(plays: Iterable[Play]) -> list[list[Attempt]]:
    """Runs plays concurrently, and returns their scored attempts. If a play fails or the caller is cancelled, the
    other plays are cancelled.
    """
    running = [asyncio.ensure_future(played(play)) for play in plays]
    try:
        return await asyncio.gather(*running)
    finally:
        # The other attempts have no reader.
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def put(buffer: queue.Queue[Any], item: Any, stopped: threading.Event) -> None:
    """Puts an item into the buffer when there is room. Drops it if the reader has stopped."""
    while not stopped.is_set():
        try:
            return buffer.put(item, timeout=0.2)
        except queue.Full:
            continue

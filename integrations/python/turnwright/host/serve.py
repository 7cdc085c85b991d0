"""Serves the protocol: reads requests, plays them on one event loop, and answers."""

from __future__ import annotations

import asyncio
import faulthandler
import inspect
import json
import os
import platform
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any, Callable

from ..environments.errors import BadEnvironment, BadResult
from . import channel, descriptors
from .blame import describe, missing_package, place_of_frame
from .requests import Requests


class Overdue(BaseException):
    """Raised on the main thread in code of a request that was cancelled."""


class Request:
    """A request that is being played."""

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.task: asyncio.Task[None] | None = None
        #: False once the result is there: a signal must not interrupt the answer.
        self.is_interruptible = True
        self.is_cancelled = False
        #: True once the task of an async request runs.
        self.has_begun = False

    def settle(self) -> None:
        """Ends the time in which a signal may interrupt the request."""
        self.is_interruptible = False


class Server:
    """Plays requests. A sync function runs immediately, and an async function as a task."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._running: dict[int, Request] = {}
        self._current: Request | None = None
        self._buffer = bytearray()
        self._over: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Serves until the other side closes its end."""
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        self._loop.set_exception_handler(lambda _, context: _report_stray(context.get("exception"), str(context["message"])))
        os.set_blocking(descriptors.IN, False)
        self._loop.add_reader(descriptors.IN, self._read)
        await self._over
        for request in list(self._running.values()):
            if request.task is not None:
                request.task.cancel()
        await self._requests.close_all()

    def interrupt(self, frame: FrameType | None) -> None:
        """Handles the signal that interrupts overdue code. It runs on the main thread.

        If the running code is not overdue, reports it, because it blocks the overdue requests.
        """
        if channel.writing or self._loop is None:
            return
        request = self._current
        if request is None:
            task = asyncio.current_task(self._loop)
            if task is None:
                self._show_cancelled()
                return
            request = next((one for one in self._running.values() if one.task is task), None)
        if request is None or not request.is_interruptible:
            return
        # The loop waits for the code that runs: it has not read the line that cancels it.
        while self._receive():
            pass
        self._loop.call_soon(self._take_lines)
        if any(_cancels(line, request.ident) for line in bytes(self._buffer).split(b"\n")):
            request.settle()
            raise Overdue("the call exceeds its time limit")
        channel.send_if_free({"busy": request.ident, **place_of_frame(frame)})

    def _show_cancelled(self) -> None:
        """Prints the lines of tasks that were cancelled but continue, in faulthandler's format, because the process is
        killed next.
        """
        for request in self._running.values():
            if request.is_cancelled and request.task is not None:
                print("Task (most recent call first):", *_lines_of(request.task.get_coro()), sep="\n", file=sys.stderr, flush=True)

    def _read(self) -> None:
        assert self._loop is not None and self._over is not None
        chunk = self._receive()
        if chunk == b"":
            self._loop.remove_reader(descriptors.IN)
            if not self._over.done():
                self._over.set_result(None)
        elif chunk is not None and b"\n" in chunk:
            self._take_lines()

    def _receive(self) -> bytes | None:
        """Reads the bytes that have arrived. Returns None if nothing has arrived, and no bytes if the other side has
        closed its end.
        """
        try:
            chunk = os.read(descriptors.IN, 1 << 16)
        except BlockingIOError:
            return None
        self._buffer += chunk
        return chunk

    def _take_lines(self) -> None:
        # Lines stay in the buffer until their turn: `interrupt()` looks there for the one that cancels.
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if message["do"] == "cancel":
            request = self._running.get(message["with"]["id"])
            if request is not None and request.task is not None:
                self._cancel(request)
            return
        request = Request(message["id"])
        self._current = request
        try:
            result = self._requests.perform(message["do"], message["with"])
            if not inspect.isawaitable(result):
                line = _encode_answer(request.ident, result)
                request.settle()
        except BaseException as error:
            request.settle()
            channel.write(_encode_error(request.ident, error))
            return
        finally:
            self._current = None
        if not inspect.isawaitable(result):
            channel.write(line)
            return
        assert self._loop is not None
        request.task = self._loop.create_task(self._finish(request, result))
        self._running[request.ident] = request

    async def _finish(self, request: Request, result: Any) -> None:
        request.has_begun = True
        try:
            line = _encode_answer(request.ident, await result)
            request.settle()
        except BaseException as error:
            request.settle()
            line = _encode_error(request.ident, error)
        finally:
            del self._running[request.ident]
        channel.write(line)

    def _cancel(self, request: Request) -> None:
        assert request.task is not None
        request.is_cancelled = True
        request.task.cancel()
        if not request.has_begun:
            # Its task will do nothing, and other code may run before.
            del self._running[request.ident]
            channel.write(_encode_error(request.ident, asyncio.CancelledError()))


def _lines_of(coroutine: Any) -> list[str]:
    """Returns the lines at which a coroutine and the coroutines that it awaits are waiting, the innermost first."""
    lines: list[str] = []
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        lines.insert(0, f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}')
        coroutine = coroutine.cr_await
    return lines


def _cancels(line: bytes, ident: int) -> bool:
    """True for the line that cancels a request."""
    return line == b'{"id":0,"do":"cancel","with":{"id":%d}}' % ident


def _encode_answer(ident: int, result: Any) -> bytes:
    try:
        return channel.encode({"id": ident, "ok": result})
    except (TypeError, ValueError, RecursionError) as error:
        raise BadResult("unwritable", str(error)) from error


def _encode_error(ident: int, error: BaseException) -> bytes:
    shown: dict[str, Any] = describe(error)
    if isinstance(error, BadResult):
        shown["code"] = error.code
    elif isinstance(error, BadEnvironment):
        shown["code"] = "refused"
    elif isinstance(error, channel.TooLong):
        shown["code"] = "environment/full"
    elif isinstance(error, (Overdue, asyncio.CancelledError)):
        shown["code"] = "overdue"
    package = missing_package(error)
    if package is not None:
        shown["missing"] = package
    try:
        return channel.encode({"id": ident, "error": shown})
    except (TypeError, ValueError):
        return channel.encode({"id": ident, "error": {"type": type(error).__name__, "message": "its message cannot be written"}})


def _report_stray(error: BaseException | None, message: str) -> None:
    """Reports an error of a thread or a task that no call waits for."""
    channel.send({"stray": {"type": "Error", "message": message} if error is None else describe(error)})


def with_progress(work: Callable[[], Any]) -> Any:
    """Performs slow work, and reports every 2 seconds that it continues."""
    over = threading.Event()

    def report() -> None:
        while not over.wait(2.0):
            channel.send({"progress": "loading"})

    threading.Thread(target=report, daemon=True).start()
    try:
        return work()
    finally:
        over.set()


def serve() -> None:
    """Serves the protocol on the process's stdin and stdout until stdin closes. Does not return."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    # Ctrl-C belongs to the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(Requests(with_progress))
    signal.signal(signal.SIGUSR2, lambda _, frame: server.interrupt(frame))
    threading.excepthook = lambda arguments: _report_stray(arguments.exc_value, "a thread failed")
    channel.send({"hello": 1, "python": platform.python_version(), "pid": os.getpid(), "executable": sys.executable})
    try:
        asyncio.run(server.run())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        _end_group()


def _end_group() -> None:
    """Ends the process and its children. Threads that still run do not delay the end."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)

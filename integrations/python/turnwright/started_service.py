"""Connects to a rollout service, or starts one."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Iterable, Sequence

from .client import Client

#: The address of a service that is started without settings.
DEFAULT_URL = "http://127.0.0.1:8799"


class ServiceFailed(Exception):
    """A service that this process started has ended. The message has the last lines of its output."""


class StartedService(Client):
    """A client with its own service, which runs until the end of the block: `with turnwright.connect(serve=[…]) as
    client:`.
    """

    def __init__(self, process: subprocess.Popen[str], url: str, token: str | None, notes: Iterable[str] = (),
                 sleep: Callable[[float], None] = time.sleep, **options: Any) -> None:
        def wait(seconds: float) -> None:
            code = process.poll()
            if code is not None:
                raise ServiceFailed(f"The service ended with exit code {code}:\n{''.join(notes).rstrip()}")
            sleep(seconds)

        super().__init__(url, token, sleep=wait, **options)
        self.url = url
        self._process = process
        atexit.register(self.stop)

    def stop(self, timeout: float = 60.0) -> None:
        """Stops the service. Finished groups remain in its folder. Kills it after `timeout` seconds."""
        atexit.unregister(self.stop)
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> StartedService:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def connect(url: str | None = None, token: str | None = None, *, serve: Sequence[str] | None = None,
            command: Sequence[str] | None = None, timeout: float = 300.0, **options: Any) -> Client:
    """Returns a client of a running service, or starts a service.

    Without `serve`, the service must already run: at `url`, otherwise at TURNWRIGHT_URL, otherwise at
    http://127.0.0.1:8799. Its token is `token`, otherwise TURNWRIGHT_TOKEN. Raises ServiceUnreachable immediately if
    the service does not answer.

    With `serve`, the flags of `turnwright serve` such as `["--env", "./calendar_env.py", …]`, it starts a service on a
    free port of this machine, and returns a StartedService. Raises ServiceFailed if the service ends, or does not
    listen within `timeout` seconds. `command` is the program (default: Turnwright beside this package, else
    `turnwright`, else `npx turnwright`).
    """
    token = token or os.environ.get("TURNWRIGHT_TOKEN") or None
    if serve is not None:
        return _start([*(command or find_command()), "serve", "--json", "--port", "0", *serve], token, timeout, options)
    client = Client(url or os.environ.get("TURNWRIGHT_URL") or DEFAULT_URL, token, **options)
    client.health()
    return client


def find_command() -> list[str]:
    """Returns the program that runs Turnwright. Raises FileNotFoundError if the program is not installed."""
    beside = Path(__file__).resolve().parents[3] / "dist" / "src" / "cli" / "main.js"
    node, own, npx = shutil.which("node"), shutil.which("turnwright"), shutil.which("npx")
    if beside.is_file() and node:
        return [node, str(beside)]
    if own:
        return [own]
    if npx:
        return [npx, "turnwright"]
    raise FileNotFoundError("Cannot start Turnwright: there is neither turnwright nor npx, install Node.js or give `command`")


def _start(arguments: list[str], token: str | None, timeout: float, options: dict[str, Any]) -> StartedService:
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stderr is not None
    notes: deque[str] = deque(maxlen=20)
    reader = threading.Thread(target=notes.extend, args=(process.stderr,), daemon=True)
    reader.start()
    timer = threading.Timer(timeout, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            address = _address_in(line)
            if address is not None:
                threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
                return StartedService(process, address, token, notes, **options)
    finally:
        timer.cancel()
    process.wait()
    reader.join(5)
    raise ServiceFailed(f"The service ended with exit code {process.returncode} before it listened:\n{''.join(notes).rstrip()}")


def _address_in(line: str) -> str | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if isinstance(message, dict) and message.get("type") == "listening":
        return str(message["url"])
    return None

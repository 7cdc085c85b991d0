"""Tools that misbehave in the ways that environments do. Each test calls one of them."""

import asyncio
import ctypes
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from turnwright import Environment, refuse

env = Environment("hostile", policy="Misbehave.", tasks=[{"instruction": "Go."}])


@env.state
def state(task) -> dict[str, Any]:
    return {"count": 0}


@env.tool
def echo(text: str) -> str:
    """Return the text."""
    return text


@env.tool
def add_and_refuse(state) -> None:
    """Change the state, and refuse."""
    state["count"] += 1
    refuse("not today")


@env.tool
def read_count(state) -> int:
    """Return the count."""
    return state["count"]


@env.tool
def prints() -> str:
    """Print in three ways."""
    print("printed by a tool")
    os.write(1, b"written to descriptor 1\n")
    os.system("echo printed by a child")
    return "ok"


@env.tool
def reads_input() -> str:
    """Ask the terminal."""
    return input("name? ")


@env.tool
def broken() -> str:
    """Raise an error."""
    return {}["missing"]


@env.tool
def exits() -> None:
    """Leave."""
    sys.exit(3)


@env.tool
def interrupts() -> None:
    """Press Ctrl-C."""
    raise KeyboardInterrupt


@env.tool
def recurses() -> str:
    """Call itself."""
    return recurses()


@env.tool
async def stops_iteration() -> None:
    """Raise what asyncio converts."""
    raise StopIteration("x")


@env.tool(timeout=0.5)
def loops() -> None:
    """Loop for ever."""
    while True:
        pass


@env.tool(timeout=0.5)
def sleeps() -> None:
    """Sleep for an hour."""
    time.sleep(3600)


@env.tool(timeout=0.5)
async def waits() -> None:
    """Wait for an hour."""
    await asyncio.sleep(3600)


@env.tool(timeout=0.5)
async def blocks() -> None:
    """Sleep in an async function."""
    time.sleep(3600)


@env.tool(timeout=0.5)
def stuck_in_c() -> bool:
    """Sleep in C code that takes no signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    while True:
        re.match(r"(a*)*b", "a" * 24)


@env.tool
def crashes() -> None:
    """Read at address 0."""
    ctypes.string_at(0)


@env.tool
def leaves_at_once() -> None:
    """End the process."""
    os._exit(7)


@env.tool
def forks() -> str:
    """Fork, and speak in the child."""
    pid = os.fork()
    if pid == 0:
        try:
            os.write(int(os.environ.get("NOWHERE", "1")), b'{"id":1,"ok":"forged"}\n')
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    return "forked"


@env.tool
def forks_a_pool() -> list[int]:
    """Use a pool of forked processes."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(abs, [-1, -2])


@env.tool
def spawns_a_pool() -> list[int]:
    """Use a pool of spawned processes."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(abs, [-1, -2])


@env.tool
def returns_much() -> str:
    """Return 20 million characters."""
    return "x" * 20_000_000


@env.tool
def returns_nan() -> float:
    """Return what JSON lacks."""
    return float("nan")


@env.tool
def returns_half() -> str:
    """Return half of a surrogate pair."""
    return "\ud800"


@env.tool
def returns_object() -> Any:
    """Return an object."""
    return object()


@env.tool
def thread_fails() -> str:
    """Start a thread that fails."""
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    return "ok"


@env.tool
async def task_fails() -> str:
    """Start a task that fails."""

    async def fail() -> None:
        raise ValueError("no call waits for this")

    asyncio.get_running_loop().create_task(fail())
    await asyncio.sleep(0.01)
    return "ok"


@env.tool
def leaves_a_child() -> int:
    """Start a program that outlives the process."""
    return subprocess.Popen(["sleep", "1000"]).pid


@env.tool
def closes_stdout() -> str:
    """Close the standard output."""
    sys.stdout.close()
    os.close(1)
    return "ok"


@env.score
def score(state, episode):
    if episode.answer == "NaN":
        return float("nan")
    if episode.answer == "hang":
        while True:
            pass
    if episode.answer == "raise":
        raise RuntimeError("no score today")
    if episode.answer == "nothing":
        return None
    return {"wanted": {"count": 0}, "details": {"calls": len(episode.calls)}}


class Unprintable(Exception):
    """An error with a message that cannot be written."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


@env.tool
def raises_unprintable() -> None:
    """Raise an error with broken code of its own."""
    raise Unprintable


@env.tool
def raises_half() -> None:
    """Raise an error with half of a surrogate pair."""
    raise ValueError("\ud800")


@env.tool
def returns_deep() -> list[Any]:
    """Return lists in lists."""
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


@env.tool(timeout=0.5)
async def ignores_cancelling() -> None:
    """Wait, whatever happens."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass


@env.tool
def leaves_children_at_once() -> None:
    """End the process, and leave a child in its group and one outside."""
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "5"], start_new_session=True)
    os._exit(8)


@env.tool
def own_pid() -> int:
    """Return the process's number."""
    return os.getpid()


@env.tool
def holds_until(path: str) -> str:
    """Hold the process until a file exists."""
    while not os.path.exists(path):
        time.sleep(0.01)
    return "released"


@env.tool(timeout=0.5)
async def quick() -> str:
    """Answer at once."""
    return "quick"

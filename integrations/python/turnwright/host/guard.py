"""A second process that ends the children of this process, even if this process is killed."""

from __future__ import annotations

import os
import signal


def start_guard() -> None:
    """Starts a process that waits for the end of this process, and then kills the processes that remain of its group.

    Call it before other threads run. Does nothing if another process leads the group.
    """
    if os.getpgrp() != os.getpid():
        return
    ended, alive = os.pipe()
    between = os.fork()
    if between == 0:
        # The guard is no child of this process: the environment may wait for all of its children.
        if os.fork() == 0:
            _guard(ended, alive)
        os._exit(0)
    os.waitpid(between, 0)
    os.close(ended)
    os.register_at_fork(after_in_child=lambda: _close(alive))


def _guard(ended: int, alive: int) -> None:
    for descriptor in (0, 1, 2, alive):
        _close(descriptor)
    # Nothing is written: the read ends when no process has the other end any more.
    os.read(ended, 1)
    os.killpg(0, signal.SIGKILL)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass

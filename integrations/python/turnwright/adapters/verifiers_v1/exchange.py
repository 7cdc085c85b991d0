"""The exchange between an environment that plays an attempt as one coroutine, and the requests of the host."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Asked:
    """The environment asks the model. `messages` are those that the model has not seen."""

    messages: list[Any]


@dataclass(frozen=True)
class Closed:
    """The attempt is over, and waits for its score. `stop` is its stop condition."""

    stop: str


@dataclass(frozen=True)
class Ended:
    """The environment has returned, or raised an error."""

    error: Exception | None = None


Event = Asked | Closed | Ended


class Exchange:
    """Passes messages to the host, and replies of the model back."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._reply: asyncio.Future[Any] | None = None
        self._may_score = asyncio.Event()

    async def ask(self, messages: list[Any]) -> Any:
        """Asks the model. Returns the model's reply, or None if the attempt has ended."""
        self._reply = asyncio.get_running_loop().create_future()
        self._events.put_nowait(Asked(messages))
        return await self._reply

    async def close(self, stop: str) -> None:
        """Reports that the attempt is over, and waits until it may be scored."""
        self._events.put_nowait(Closed(stop))
        await self._may_score.wait()

    def end(self, error: Exception | None = None) -> None:
        """Reports that the environment has returned or failed."""
        self._events.put_nowait(Ended(error))

    async def next(self) -> Event:
        """Returns the next event."""
        return await self._events.get()

    def reply(self, reply: Any) -> None:
        """Passes the model's reply on. None means that the attempt has ended."""
        assert self._reply is not None
        self._reply.set_result(reply)

    def allow_score(self) -> None:
        """Lets the attempt be scored."""
        self._may_score.set()

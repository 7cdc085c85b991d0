"""HTTP calls to the service, and their repetition if the answer does not arrive."""

from __future__ import annotations

import http.client
import json
import logging
import re
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

from .whole_number import whole_number

Body = dict[str, Any]

RETRIED_STATUSES: frozenset[int] = frozenset({429, 502, 503})
# Tries at an address that never answered, and the limit of a connection in seconds.
ABSENT_TRIES, CONNECT_TIMEOUT = 3, 5.0

log: logging.Logger = logging.getLogger("turnwright")
# Addresses that answered in this process. A service at such an address may return.
_answered: set[str] = set()


class ServiceError(Exception):
    """The service refused a call: `status` is the HTTP status. Programs can rely on `code`."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code} ({status}): {message}")
        self.status: int = status
        self.code: str = code
        self.message: str = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, self.message)


class ServiceUnreachable(Exception):
    """No complete answer came, even after repetitions."""


class Problem(Exception):
    """A call that must be repeated: its answer was incomplete, or requested a repetition."""

    def __init__(self, message: str, *, is_full: bool = False, is_absent: bool = False,
                 after_s: float | None = None) -> None:
        super().__init__(message)
        self.is_full: bool = is_full
        self.is_absent: bool = is_absent
        self.after_s: float | None = after_s


class HttpCalls:
    """Makes the calls of one client."""

    def __init__(self, url: str, token: str | None, *, timeout: float, retries: int,
                 sleep: Callable[[float], None]) -> None:
        wrong = ValueError(f"Cannot use {shown(url)!r} as the service's address: expected http://host:port")
        try:
            parts = urlsplit(url)
            port = parts.port
        except (ValueError, TypeError, AttributeError) as error:
            raise wrong from error
        if parts.scheme not in ("http", "https") or not isinstance(parts.hostname, str):
            raise wrong
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("Cannot use the token: expected printable ASCII, without line breaks")
        self._url, self._host, self._port, self._path = shown(url), parts.hostname, port, parts.path.rstrip("/")
        self._is_secure = parts.scheme == "https"
        self._token, self._timeout, self._retries, self._sleep = token, timeout, retries, sleep

    def call(self, method: str, path: str, content: bytes | None, content_type: str = "application/json") -> Any:
        """Returns the answer's JSON. Raises ServiceError, or Problem if the call must be repeated."""
        headers = {} if content is None else {"Content-Type": content_type}
        connection, response = self._send(method, path, content, headers)
        try:
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise _lost(error) from error
        finally:
            connection.close()
        try:
            return json.loads(answer)
        except ValueError as error:
            raise self._no_service(response.status, answer) from error

    def fetch(self, path: str, headers: dict[str, str]) -> bytes:
        """Returns the answer's bytes. Raises as `call()` does."""
        connection, response = self._send("GET", path, None, headers)
        try:
            return response.read()
        except (OSError, http.client.HTTPException) as error:
            raise _lost(error) from error
        finally:
            connection.close()

    def stream(self, path: str) -> Iterator[dict[str, Any]]:
        """Yields the answer's lines as they arrive. Ends silently if the connection breaks within a line."""
        connection, response = self._send("GET", path, None)
        try:
            while line := self._line(response):
                if not line.endswith(b"\n"):
                    return
                try:
                    value = json.loads(line)
                except ValueError as error:
                    raise self._no_service(response.status, line) from error
                if not isinstance(value, dict) or "type" not in value:
                    raise self._no_service(response.status, line)
                yield value
        finally:
            connection.close()

    def pause(self, failures: int, what: str, problem: Problem) -> int:
        """Waits before a repetition, and returns the number of failures. Raises ServiceUnreachable after the last try."""
        tries = failures + 1
        if problem.is_absent and self._url not in _answered and tries >= min(ABSENT_TRIES, self._retries + 1):
            raise ServiceUnreachable(
                f"Nothing answers at {self._url} ({problem}): start `turnwright serve`, or use the address of a "
                "running one (connect() and the shims read TURNWRIGHT_URL)") from None
        if not problem.is_full and failures >= self._retries:
            raise ServiceUnreachable(f"{what} failed {tries} times at {self._url}, last by {problem}") from None
        wait = max(min(30.0, 0.5 * 2 ** min(failures, 6)), problem.after_s or 0)
        log.warning("%s: %s; trying again in %g s", what, problem, wait)
        self._sleep(wait)
        # A full service is reachable, so waiting for room is not a failure.
        return failures if problem.is_full else tries

    def _line(self, response: http.client.HTTPResponse) -> bytes:
        try:
            return response.readline()
        except (OSError, http.client.HTTPException) as error:
            raise _lost(error) from error

    def _send(self, method: str, path: str, content: bytes | None,
              more: dict[str, str] | None = None) -> tuple[Any, http.client.HTTPResponse]:
        connection = self._connect()
        headers = {"Accept": "application/json", **(more or {})}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, self._path + path, content, headers)
            response = connection.getresponse()
            _answered.add(self._url)
            if response.status < 300:
                return connection, response
            error = self._to_error(response, response.read(65536))
        except (OSError, http.client.HTTPException) as lost:
            connection.close()
            raise _lost(lost) from lost
        except BaseException:
            connection.close()
            raise
        connection.close()
        if response.status in RETRIED_STATUSES:
            raise Problem(str(error), is_full=response.status == 429, after_s=_seconds(response)) from error
        raise error

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=min(CONNECT_TIMEOUT, self._timeout))
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Problem(f"{type(error).__name__}: {error}", is_absent=True) from error
        connection.sock.settimeout(self._timeout)
        return connection

    def _to_error(self, response: http.client.HTTPResponse, content: bytes) -> ServiceError:
        place = response.getheader("Location")
        if 300 <= response.status < 400 and place is not None:
            # A followed redirect would send the token to another server.
            return ServiceError(response.status, "redirect", f"{self._url} redirects to {shown(place)}: use that address")
        return _to_error(response.status, content)

    def _no_service(self, status: int, content: bytes) -> ServiceError:
        begin = content[:80].decode("utf-8", "replace")
        return ServiceError(status, "bad-answer", f"{self._url} answers {begin!r}: expected Turnwright's service")


def shown(url: Any) -> str:
    """Returns an address for messages, without user, password and query."""
    return re.sub(r"//[^/?#]*@", "//", re.split(r"[?#]", str(url), maxsplit=1)[0])


def to_body(body: Body) -> bytes:
    """Returns the body as JSON. Converts numbers of numpy and torch."""
    return json.dumps(body, separators=(",", ":"), allow_nan=False, default=_plain).encode()


def _plain(value: Any) -> Any:
    if hasattr(value, "__index__"):
        return whole_number("a number", value)
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError(f"Cannot send {value!r}: expected a number or a text")


def _lost(error: Exception) -> Problem:
    return Problem(f"{type(error).__name__}: {error}")


def _seconds(response: http.client.HTTPResponse) -> float | None:
    text = response.getheader("Retry-After") or ""
    return min(float(text), 60.0) if text.isdecimal() else None


def _to_error(status: int, content: bytes) -> ServiceError:
    try:
        error = json.loads(content)["error"]
        return ServiceError(status, str(error["code"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", content[:200].decode("utf-8", "replace"))


__all__ = ["Body", "HttpCalls", "Problem", "ServiceError", "ServiceUnreachable", "log", "to_body"]

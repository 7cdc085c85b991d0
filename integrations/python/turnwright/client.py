"""The client of the rollout service. Its contract is docs/service.md of Turnwright."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Callable, Iterator, Sequence
from urllib.parse import quote, urlencode

from .attempt import Group, TrainerGroup
from .doctor import Diagnosis, LiveLogprobs
from .http_call import Body, HttpCalls, Problem, ServiceError, ServiceUnreachable, to_body
from .whole_number import whole_number


@dataclass(frozen=True)
class Batch:
    """Requested rollouts. `state` is queued, running, finished, cancelled or failed.

    `reason` says why the batch failed, or why it waits for another start of the service.
    """

    batch: str
    key: str
    state: str
    groups: int
    finished_groups: int
    reason: str | None = None


class Client:
    """Calls the service. A call is repeated if its answer does not arrive; this is safe for every call.

    `timeout` is the longest silence in seconds. It must exceed 10 s, the interval of a stream's wait lines.
    `retries` is the number of repetitions, with pauses of 0.5 s, 1 s, 2 s, … up to 30 s. If an address never
    answered in this process, the client stops after a few seconds. While the service is full (429), calls
    are repeated without a limit. The logger `turnwright` warns of each repetition.
    Several threads may share a client: each call opens its own connection.
    """

    def __init__(self, url: str = "http://127.0.0.1:8799", token: str | None = None, *, timeout: float = 60,
                 retries: int = 8, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http = HttpCalls(url, token, timeout=timeout, retries=retries, sleep=sleep)
        self._specs: dict[str, Any] | None = None

    def health(self) -> dict[str, Any]:
        """Returns the service's state, the policy's version, and the queued, running and unread counts."""
        return dict(self._call("GET", "/v1/health"))

    def submit(self, *, key: str, split: str, tasks: Sequence[int], samples: int, seed: int = 0,
               sampling: dict[str, float] | None = None, deadline_s: float | None = None,
               min_policy_version: int | None = None, engine: str | None = None) -> Batch:
        """Requests `samples` attempts at each of the tasks. A repeated call with the same key returns the same batch.

        `engine` is the address of the sampling engine. The service must be started with it.
        """
        if isinstance(tasks, (str, bytes)):
            raise TypeError(f"Cannot use tasks={tasks!r}: expected a list of indexes")
        body: Body = {"key": key, "split": split, "tasks": [whole_number("tasks", task) for task in tasks],
                      "samples": whole_number("samples", samples), "seed": whole_number("seed", seed),
                      "sampling": sampling or {}}
        if deadline_s is not None:
            body["deadlineS"] = deadline_s
        if min_policy_version is not None:
            body["minPolicyVersion"] = whole_number("min_policy_version", min_policy_version)
        if engine is not None:
            body["engine"] = engine
        return _to_batch(self._call("POST", "/v1/batches", body))

    def poll(self, batch: str) -> Batch:
        """Returns the current state of a batch."""
        return _to_batch(self._call("GET", f"/v1/batches/{quote(batch, safe='')}"))

    def batches(self) -> list[Batch]:
        """Returns all batches that are not forgotten, oldest first."""
        return [_to_batch(one) for one in self._call("GET", "/v1/batches")["batches"]]

    def cancel(self, batch: str) -> Batch:
        """Cancels the unfinished part of a batch. Finished groups can still be read."""
        return _to_batch(self._call("DELETE", f"/v1/batches/{quote(batch, safe='')}"))

    def cancel_all(self) -> list[Batch]:
        """Cancels the unfinished parts of all batches."""
        return [_to_batch(one) for one in self._call("DELETE", "/v1/batches")["batches"]]

    def groups(self, batch: str | None = None, *, cursor: int = 0) -> Iterator[Group]:
        """Yields the finished groups after the cursor: those of one batch until its end, or those of all batches
        without an end. After a broken stream the iteration continues after the last group, so that each group comes
        exactly once. Another process can continue from a group's `cursor`.
        """
        for body, cursor in self._groups(batch, cursor, {}):
            yield Group.of(body, cursor)

    def trainer_groups(self, format: str, batch: str | None = None, *, cursor: int = 0,
                       policy_version: int | None = None, prompt_text: bool = False) -> Iterator[TrainerGroup]:
        """Yields groups like `groups()`, in the form of one trainer: a name of `turnwright export --to`.

        `policy_version` replaces versions that the engine did not name. With `prompt_text`, slime's prompts are
        texts. The records have no side columns. Raises Unfit, naming the row and the remedy, if the trainer cannot use a
        group: also if it has columns that the trainer takes. Use `groups()` and `columns()` then.
        """
        query: dict[str, Any] = {"format": format}
        if policy_version is not None:
            query["policyVersion"] = policy_version
        if prompt_text:
            query["promptText"] = "true"
        for body, cursor in self._groups(batch, cursor, query):
            yield TrainerGroup.of(body, cursor)

    def _groups(self, batch: str | None, cursor: int, more: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
        failures = 0
        while True:
            query = {"cursor": cursor, **({} if batch is None else {"batch": batch}), **more}
            try:
                for line in self._http.stream(f"/v1/groups?{urlencode(query)}"):
                    if line["type"] == "group":
                        cursor, failures = line["cursor"], 0
                        yield line["group"], cursor
                    elif line["type"] == "end" and line["state"] != "stopping":
                        return
                problem = Problem("the stream ended without its last line")
            except Problem as met:
                problem = met
            failures = self._http.pause(failures, f"GET /v1/groups after {cursor}", problem)

    def play(self, *, key: str, split: str, tasks: Sequence[int], samples: int, **more: Any) -> Iterator[Group]:
        """Submits a batch, and yields its groups as they finish."""
        return self.groups(self.submit(key=key, split=split, tasks=tasks, samples=samples, **more).batch)

    def acknowledge(self, cursor: int | None = None, batch: str | None = None) -> None:
        """Acknowledges groups, so that the service may forget them: up to the cursor, of one batch or of all batches,
        including those of other readers. Without a cursor: all groups of a batch that has ended."""
        about = {"cursor": cursor, "batch": batch}
        self._call("POST", "/v1/groups/ack", {name: value for name, value in about.items() if value is not None})

    def columns(self, part: dict[str, Any], start: int = 0, end: int | None = None) -> bytes:
        """Returns the bytes of a part of a row's side columns, from `start` to `end`. Read them before you acknowledge the
        group: the service may then forget them. Raises ServiceError if the bytes are not those of the part."""
        size = int(part["size"])
        end, path = size if end is None else end, f"/v1/columns/{quote(part['hash'], safe='')}"
        if start >= end:
            return b""
        is_whole = start == 0 and end == size
        headers = {} if is_whole else {"Range": f"bytes={start}-{end - 1}"}
        failures = 0
        while True:
            try:
                content = self._http.fetch(path, {"Accept": "application/octet-stream", **headers})
                break
            except Problem as problem:
                failures = self._http.pause(failures, f"GET {path}", problem)
        if len(content) != end - start or (is_whole and sha256(content).hexdigest()[:32] != part["hash"]):
            raise ServiceError(200, "bad-answer", f"{path} has {len(content)} bytes that are not those of the part")
        return content

    def column_specs(self) -> dict[str, Any]:
        """Returns the side columns of the service's rows, with their shapes. Empty if the service has none."""
        if self._specs is None:
            self._specs = self.health().get("columns") or {}
        return self._specs

    def trainer_logprobs(self, *, policy_version: int | str | None = None) -> LiveLogprobs:
        """Returns a block in which a trainer posts its own logprobs of rows, so that the service compares them with the
        engine's. `policy_version` is the version of the weights that score the rows, unless a call names another
        version. with client.trainer_logprobs(policy_version=7) as out:
                out.write(group.about["batch"], row["rolloutId"], row["segment"], logprobs, first=1)
        """
        return LiveLogprobs(self._post_lines, policy_version)

    def _post_lines(self, lines: bytes) -> None:
        self._call("POST", "/v1/trainer-logprobs", lines)

    def doctor(self, *, lag: int | None = None, thresholds: dict[str, float] | None = None) -> Diagnosis:
        """Returns the diagnosis of the newest rows of `trainer_logprobs()`.

        `lag` is the one to assume for tokens with an unknown version. The names of thresholds are those of `--json`,
        such as `meanDifference`.
        """
        query: dict[str, Any] = {**(thresholds or {}), **({} if lag is None else {"lag": whole_number("lag", lag)})}
        body = self._call("GET", "/v1/doctor" + (f"?{urlencode(query)}" if query else ""))
        try:
            return Diagnosis(body["verdict"], body["text"], body["hasFinding"], body)
        except (KeyError, TypeError) as error:
            raise ServiceError(200, "bad-answer", f"The answer is not a diagnosis: {str(body)[:200]}") from error

    def clear(self, run: str) -> int:
        """Cancels the unfinished batches with keys that start with `run/`, and forgets all groups of such batches.

        Use it to clear the requests of an earlier trainer process. Returns the number of cancelled batches.
        """
        return int(self._call("POST", "/v1/clear", {"keyPrefix": f"{run}/"})["cancelledBatches"])

    def announce(self, version: int, weights: str | None = None, *, restart: bool = False) -> int:
        """Makes the engine load weights as a new version of the policy. Returns when the weights are loaded.

        With `restart`, for a trainer that starts again, the version may be lower if no batch is unfinished.
        """
        body: Body = {"version": whole_number("version", version)}
        if weights is not None:
            body["weights"] = weights
        if restart:
            body["restart"] = True
        return int(self._call("POST", "/v1/policy", body)["policyVersion"])

    def pause(self) -> None:
        """Interrupts sampling until `resume()`. Returns when the engine is idle."""
        self._call("POST", "/v1/pause", {})

    def resume(self) -> None:
        """Continues after `pause()`."""
        self._call("POST", "/v1/resume", {})

    def _call(self, method: str, path: str, body: Body | bytes | None = None) -> Any:
        """Calls the service. A body of bytes has JSON lines."""
        content = body if body is None or isinstance(body, bytes) else to_body(body)
        type_ = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        failures = 0
        while True:
            try:
                return self._http.call(method, path, content, type_)
            except Problem as problem:
                failures = self._http.pause(failures, f"{method} {path}", problem)


def _to_batch(body: Any) -> Batch:
    try:
        return Batch(body["batch"], body["key"], body["state"], body["groups"], body["finishedGroups"],
                     body.get("reason"))
    except (KeyError, TypeError, AttributeError) as error:
        raise ServiceError(200, "bad-answer", f"The answer is not a batch: {str(body)[:200]}") from error


__all__ = ["Batch", "Client", "ServiceError", "ServiceUnreachable"]

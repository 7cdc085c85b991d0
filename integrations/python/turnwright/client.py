"""The client of the rollout service; docs/service.md of Turnwright has the contract."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Sequence
from urllib.parse import quote, urlencode

from .attempt import Group, TrainerGroup
from .http_call import Body, HttpCalls, Problem, ServiceError, ServiceUnreachable, to_body
from .whole_number import whole_number


@dataclass(frozen=True)
class Batch:
    """Rollouts that were asked for. `state` is queued, running, finished, cancelled or failed.

    `reason` says why it failed, or why it waits for another start of the service.
    """

    batch: str
    key: str
    state: str
    groups: int
    finished_groups: int
    reason: str | None = None


class Client:
    """Calls the service. Every call may be made again, and is where its answer does not arrive.

    `timeout` is seconds of silence that are borne: more than the 10 s after which a stream says that it
    waits. `retries` is how often a call is made again, with pauses of 0.5 s, 1 s, 2 s, … up to 30 s. An
    address that never answered in this process is given up after a few seconds. A service that is full
    (429) is asked again for as long as it says so. The logger `turnwright` warns of each further try.
    Safe to use from several threads: each call has a connection of its own.
    """

    def __init__(self, url: str = "http://127.0.0.1:8799", token: str | None = None, *, timeout: float = 60,
                 retries: int = 8, sleep: Callable[[float], None] = time.sleep) -> None:
        self._http = HttpCalls(url, token, timeout=timeout, retries=retries, sleep=sleep)

    def health(self) -> dict[str, Any]:
        """How the service is: its state, the policy's version, what is queued, running and unread."""
        return dict(self._call("GET", "/v1/health"))

    def submit(self, *, key: str, split: str, tasks: Sequence[int], samples: int, seed: int = 0,
               sampling: dict[str, float] | None = None, deadline_s: float | None = None,
               min_policy_version: int | None = None, engine: str | None = None) -> Batch:
        """Asks for `samples` attempts at each of the tasks. The same key again is the same batch.

        `engine` is the address of the engine that samples, one that the service was started with.
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
        """A batch as it is now."""
        return _to_batch(self._call("GET", f"/v1/batches/{quote(batch, safe='')}"))

    def batches(self) -> list[Batch]:
        """All batches that are not forgotten, oldest first."""
        return [_to_batch(one) for one in self._call("GET", "/v1/batches")["batches"]]

    def cancel(self, batch: str) -> Batch:
        """Gives up what is not finished of a batch; finished groups stay to be read."""
        return _to_batch(self._call("DELETE", f"/v1/batches/{quote(batch, safe='')}"))

    def cancel_all(self) -> list[Batch]:
        """Gives up what is not finished of all batches."""
        return [_to_batch(one) for one in self._call("DELETE", "/v1/batches")["batches"]]

    def groups(self, batch: str | None = None, *, cursor: int = 0) -> Iterator[Group]:
        """Finished groups behind the cursor as they come, of one batch up to its end or of all for ever.

        A stream that breaks is asked for again from the last group on: none is given twice or missing.
        Each group's `cursor` is the one to go on from in another process.
        """
        for told, cursor in self._groups(batch, cursor, {}):
            yield Group.of(told, cursor)

    def trainer_groups(self, format: str, batch: str | None = None, *, cursor: int = 0,
                       policy_version: int | None = None, prompt_text: bool = False) -> Iterator[TrainerGroup]:
        """The same as `groups()`, in the form of one trainer: its name as `turnwright export --to` takes it.

        `policy_version` stands for versions that the engine did not name; with `prompt_text`, slime's prompts are
        texts. Raises Unfit, naming the row and the remedy, where the trainer cannot be given a group.
        """
        query: dict[str, Any] = {"format": format}
        if policy_version is not None:
            query["policyVersion"] = policy_version
        if prompt_text:
            query["promptText"] = "true"
        for told, cursor in self._groups(batch, cursor, query):
            yield TrainerGroup.of(told, cursor)

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
            failures = self._http.pause(failures, f"GET /v1/groups behind {cursor}", problem)

    def play(self, *, key: str, split: str, tasks: Sequence[int], samples: int, **more: Any) -> Iterator[Group]:
        """Submits a batch and gives back its groups as they finish."""
        return self.groups(self.submit(key=key, split=split, tasks=tasks, samples=samples, **more).batch)

    def acknowledge(self, cursor: int | None = None, batch: str | None = None) -> None:
        """Says that groups are safe here, for the service to forget them: up to the cursor, of one batch or of all
        (also those that others read); without a cursor, all of a batch that has ended."""
        about = {"cursor": cursor, "batch": batch}
        self._call("POST", "/v1/groups/ack", {name: value for name, value in about.items() if value is not None})

    def clear(self, run: str) -> int:
        """Cancels the unfinished batches whose keys begin with `run/`, and lets all groups of such be forgotten.

        For what a trainer that is gone had asked for: one call, however many there are. Gives back how many batches
        were cancelled.
        """
        return int(self._call("POST", "/v1/clear", {"keyPrefix": f"{run}/"})["cancelledBatches"])

    def announce(self, version: int, weights: str | None = None, *, restart: bool = False) -> int:
        """Has the engine load weights, as a new version of the policy; returns once it has.

        With `restart` the version may be a lower one, while no batch is unfinished: a trainer began anew.
        """
        body: Body = {"version": whole_number("version", version)}
        if weights is not None:
            body["weights"] = weights
        if restart:
            body["restart"] = True
        return int(self._call("POST", "/v1/policy", body)["policyVersion"])

    def pause(self) -> None:
        """Ends the sampling under way, to be gone on with later; returns once the engine is idle."""
        self._call("POST", "/v1/pause", {})

    def resume(self) -> None:
        """Goes on after `pause()`."""
        self._call("POST", "/v1/resume", {})

    def _call(self, method: str, path: str, body: Body | None = None) -> Any:
        content = None if body is None else to_body(body)
        failures = 0
        while True:
            try:
                return self._http.call(method, path, content)
            except Problem as problem:
                failures = self._http.pause(failures, f"{method} {path}", problem)


def _to_batch(body: Any) -> Batch:
    try:
        return Batch(body["batch"], body["key"], body["state"], body["groups"], body["finishedGroups"],
                     body.get("reason"))
    except (KeyError, TypeError, AttributeError) as error:
        raise ServiceError(200, "bad-answer", f"The answer is no batch: {str(body)[:200]}") from error


__all__ = ["Batch", "Client", "ServiceError", "ServiceUnreachable"]

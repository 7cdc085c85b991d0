"""Groups and attempts, and the split into prompt and response that most trainers take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

from .columns import LoadedColumns
from .rows import Row


class Unfit(Exception):
    """An attempt or group that the trainer cannot use. The message has the reason."""


@dataclass(frozen=True)
class Response:
    """A row split into prompt and response, up to its last sampled token. Mask, logprobs and versions are those of the
    response.
    """

    prompt_ids: list[int]
    response_ids: list[int]
    mask: list[int]
    logprobs: list[float]
    versions: list[str]

    @property
    def ids(self) -> list[int]:
        """The ids of prompt and response."""
        return self.prompt_ids + self.response_ids

    def over_whole(self, values: list[Any], fill: Any) -> list[Any]:
        """Extends values of the response to the whole row. The prompt gets `fill`."""
        return [fill] * len(self.prompt_ids) + values


@dataclass(frozen=True)
class Attempt:
    """One attempt at a task. `reward` is None, not 0, if the attempt was not scored."""

    rollout_id: str
    outcome: str
    stop_reason: str
    reward: float | None
    rows: list[Row]
    about: dict[str, Any]
    # The side columns of the rows. None if the run has none, or they were not read.
    columns: LoadedColumns | None = None

    @property
    def is_scored(self) -> bool:
        """True if the attempt has a reward and sampled tokens, so that it can be trained on."""
        return self.reward is not None and any(1 in row["lossMask"] for row in self.rows)

    @property
    def components(self) -> dict[str, float]:
        """The values of the reward's components by name, without their weights. Empty if the environment gives none."""
        return {name: one["value"] for name, one in (self.about.get("rewardComponents") or {}).items()}

    @property
    def component_metrics(self) -> dict[str, float]:
        """The components' values as `rewards/NAME`, which no other metric is named."""
        return {f"rewards/{name}": float(value) for name, value in self.components.items()}

    @property
    def trained_rows(self) -> list[Row]:
        """The rows that have a trained token, in order. Only these are handed to a trainer."""
        return [row for row in self.rows if 1 in row["lossMask"]]

    @property
    def row_count(self) -> int:
        """The number of rows that have a trained token."""
        return len(self.trained_rows)

    @property
    def token_count(self) -> int:
        """The number of trained tokens of all rows."""
        return sum(sum(row["lossMask"]) for row in self.rows)

    def responses(self) -> list[Response]:
        """Returns all rows that have a trained token, in order. Raises Unfit if there is no such row."""
        rows = self.trained_rows
        if not rows:
            raise Unfit(f"{self.rollout_id} has no sampled token")
        return [to_response(row) for row in rows]

    def response(self) -> Response:
        """Returns the attempt's only row with a trained token. Raises Unfit if there are several, or none."""
        rows = self.responses()
        if len(rows) != 1:
            raise Unfit(f"{self.rollout_id} has {len(rows)} rows, and one is expected")
        return rows[0]


@dataclass(frozen=True)
class Group:
    """The attempts at one task, in the order of the request."""

    group_id: str
    task_index: int
    cursor: int
    attempts: list[Attempt]
    about: dict[str, Any]

    @staticmethod
    def of(body: dict[str, Any], cursor: int) -> Group:
        """Reads the group of a line of the service."""
        attempts = [to_attempt(one) for one in body["attempts"]]
        about = {name: value for name, value in body.items() if name != "attempts"}
        return Group(body["groupId"], body["taskIndex"], cursor, attempts, about)


@dataclass(frozen=True)
class TrainerGroup:
    """A group as one trainer reads it: `records` are those of `turnwright export`. `notes` list omitted and cut rows."""

    group_id: str
    task_index: int
    cursor: int
    records: list[dict[str, Any]]
    notes: list[dict[str, Any]]
    about: dict[str, Any]

    @staticmethod
    def of(body: dict[str, Any], cursor: int) -> TrainerGroup:
        """Reads the group of a line of the service. Raises Unfit if the trainer cannot use the group."""
        if "refused" in body:
            raise Unfit(body["refused"])
        about = {name: value for name, value in body.items() if name not in ("records", "notes")}
        return TrainerGroup(body["groupId"], body["taskIndex"], cursor, body["records"], body["notes"], about)


def to_attempt(body: dict[str, Any]) -> Attempt:
    about = {name: value for name, value in body.items() if name != "rows"}
    return Attempt(body["rolloutId"], body["outcome"], body["stopReason"], body.get("reward"), body["rows"], about)


def to_response(row: Row) -> Response:
    """Splits a row into prompt and response, without the tokens after its last sampled token."""
    mask = row["lossMask"]
    end = len(mask) - mask[::-1].index(1) if 1 in mask else 0
    start = row["promptLength"]
    if end <= start:
        raise Unfit(f"{row['rolloutId']} has no sampled token")
    ids = row["tokenIds"]
    return Response(ids[:start], ids[start:end], mask[start:end], row["logprobs"][start:end],
                    row["policyVersions"][start:end])


def lineage_of(row: Row) -> dict[str, Any]:
    """Returns the lineage of a row: its role, its place among the attempt's rows, and the turn that it comes from.

    Empty if the attempt has one row. docs/runs.md has the members.
    """
    lineage: dict[str, Any] = row["metadata"].get("lineage") or {}
    return lineage


def whole_version(version: str) -> int:
    """Returns a policy version as a number. Raises Unfit if it is not a whole number."""
    if not version.isdecimal():
        raise Unfit(f"The policy's version is {version!r}, expected a whole number: announce one to the engine")
    return int(version)


def sampled_versions(versions: Iterable[str], mask: Iterable[int]) -> list[int]:
    """Returns the version of each sampled token."""
    return [whole_version(version) for version, bit in zip(versions, mask) if bit == 1]

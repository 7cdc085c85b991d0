"""Reads the rows that Turnwright wrote, without any dependency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterable, Iterator

Row = dict[str, Any]


def read_lines(file: str | Path) -> Iterator[Row]:
    """The objects of a file of JSON lines. A last line that is torn was never acknowledged and is passed over.

    Raises ValueError, naming file and line, where any other line is no JSON object.
    """
    torn: str | None = None
    with open(file, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if torn is not None:
                raise ValueError(torn)
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode("utf-8"))
            except ValueError as error:
                torn = f"Cannot read {file}, line {number}: it is no JSON ({error})"
                continue
            if not isinstance(value, dict):
                raise ValueError(f"Cannot read {file}, line {number}: expected an object")
            yield value


def read_rows(run: str | Path) -> Iterator[Row]:
    """The training rows of a run's folder, or of a file of samples, in their order.

    Only rows of finished episodes: what a crash left behind is passed over, as a resumed run does.
    """
    path = Path(run)
    if not path.is_dir():
        yield from read_lines(path)
        return
    finished = {episode["rolloutId"] for episode in read_episodes(path)}
    for row in read_lines(path / "samples.jsonl"):
        if row["rolloutId"] in finished:
            yield row


def read_episodes(run: str | Path) -> Iterator[Row]:
    """The finished episodes of a run's folder, or of a file of episodes: messages, turns, reward."""
    path = Path(run)
    yield from read_lines(path / "episodes.jsonl" if path.is_dir() else path)


def group_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one group after another; a group's rows stand together, as a finished run has them."""
    group: list[Row] = []
    seen: set[str] = set()
    for row in rows:
        if group and row["groupId"] != group[0]["groupId"]:
            yield group
            group = []
        if not group:
            if row["groupId"] in seen:
                raise ValueError(f"The rows of {row['groupId']} do not stand together: is the run finished?")
            seen.add(row["groupId"])
        group.append(row)
    if group:
        yield group

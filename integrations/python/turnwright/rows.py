"""Reads Turnwright's rows, without any dependency."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, Iterable, Iterator

Row = dict[str, Any]


def read_lines(file: str | Path) -> Iterator[Row]:
    """Yields the objects of a file of JSON lines, even if `turnwright pack` compressed it. Skips a last line that a
    crash cut off.

    Raises ValueError, naming file and line, if any other line is not a JSON object in UTF-8, or if a packed file is
    damaged.
    """
    yield from read_objects(file, may_grow=True)


def read_objects(file: str | Path, *, may_grow: bool) -> Iterator[Row]:
    """Yields the objects of a file of JSON lines. A torn last line is skipped if the file `may_grow`, otherwise
    refused.
    """
    for number, line in enumerate(_bytes_of_lines(Path(file)), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        except ValueError as error:
            if may_grow and not line.endswith(b"\n"):
                return
            raise ValueError(f"Cannot read {file}, line {number}: it is not JSON ({error})") from error
        if not isinstance(value, dict):
            raise ValueError(f"Cannot read {file}, line {number}: expected an object")
        yield value


def _bytes_of_lines(file: Path) -> Iterator[bytes]:
    packed = file if file.suffix == ".gz" else file.with_name(f"{file.name}.gz")
    if packed != file and (file.exists() or not packed.exists()):
        with open(file, "rb") as lines:
            yield from lines
        return
    with gzip.open(packed) as lines:
        number = 1
        while True:
            try:
                line = lines.readline()
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(
                    f"Cannot read {packed}, line {number}: the file is damaged ({error}); copy it again"
                ) from error
            if not line:
                return
            yield line
            number += 1


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def read_rows(run: str | Path) -> Iterator[Row]:
    """Yields the training rows of a run's folder, or of a file of samples, in order.

    From a folder, yields only rows of finished episodes, and skips the rows that a crash left of an unfinished one.
    From a file, yields every row.
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
    """Yields the finished episodes of a run's folder, or of a file of episodes: messages, turns, reward.

    If a line stores the text of a turn only in its messages, the turn's text is restored.
    """
    path = Path(run)
    for episode in read_lines(path / "episodes.jsonl" if path.is_dir() else path):
        messages = episode.get("messages", [])
        for turn in episode.get("turns", []):
            for holder in (turn, *turn.get("steps", [])):
                for name in ("text", "reasoning", "observation"):
                    if isinstance(holder.get(name), list):
                        holder[name] = _join(holder[name], messages)
        yield episode


def _join(stored: list[Any], messages: list[Row]) -> str:
    """Joins the parts of a text: a part is text, or names a message's content or reasoning."""
    parts = []
    for part in stored:
        if isinstance(part, str):
            parts.append(part)
        elif "contentOf" in part:
            parts.append(messages[part["contentOf"]]["content"])
        else:
            parts.append(messages[part["reasoningOf"]]["reasoning"])
    return "".join(parts)


def group_rows(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yields the rows of each group. The rows of a group must be adjacent, as in a finished run."""
    group: list[Row] = []
    seen: set[str] = set()
    for row in rows:
        if group and row["groupId"] != group[0]["groupId"]:
            yield group
            group = []
        if not group:
            if row["groupId"] in seen:
                raise ValueError(f"The rows of {row['groupId']} are not adjacent: is the run finished?")
            seen.add(row["groupId"])
        group.append(row)
    if group:
        yield group

"""A teacher's columns of rows as numpy arrays, from a run's folder. Files are mapped, not copied. Needs numpy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .columns import PartFiles, TokenSets
from .rows import Row, read_lines

if TYPE_CHECKING:
    import numpy


@dataclass(frozen=True)
class TeacherColumns:
    """A teacher's columns of one row.

    `logprobs` is float32 [tokens after the prompt]: entry i is that of token `promptLength + i`. Environment tokens
    have logprobs, too. All logprobs are those of the softmax at temperature 1. `top` has the most probable ids of each
    token after the prompt, best first, or is None if the teacher listed none. The token itself may not be among these
    ids.
    """

    logprobs: numpy.ndarray
    top: TokenSets | None


class TeacherFolder:
    """The columns that `turnwright score RUN --name NAME` added to a run. Reads no bytes until a row is read.

    `about` is the teacher's description: `engine`, `model`, `policyVersion`, `topCount`. With `verify`, the bytes of each
    part are compared with its hash when they are read first. Raises ValueError if the run has no such teacher.
    """

    def __init__(self, run: str | Path, name: str, *, verify: bool = False) -> None:
        folder = Path(run) / "teachers"
        if not (folder / f"{name}.json").is_file():
            found = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none"
            raise ValueError(f"Cannot read the teacher {name} of {run}: it has the teachers {found}")
        self.about: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
        self._files = PartFiles(run, verify=verify)
        rows = folder / f"{name}.jsonl"
        # The last line of a row counts.
        self._rows = {(line["rolloutId"], line["segment"]): line["columns"] for line in read_lines(rows)} if rows.is_file() else {}

    def read(self, row: Row) -> TeacherColumns:
        """Returns the columns of a row, as views of the files.

        Raises KeyError if the teacher has not scored the row, and ValueError if a column does not fit it.
        """
        import numpy

        columns = self._rows.get((row["rolloutId"], row["segment"]))
        if columns is None:
            raise KeyError(f"{self.about['name']} has not scored {row['rolloutId']}, row {row['segment']}; call turnwright score again")
        count = len(row["tokenIds"]) - row["promptLength"]
        if count == 0:
            return TeacherColumns(numpy.empty(0, "<f4"), None)
        logprobs = numpy.frombuffer(self._part(row, columns, "teacherLogprobs", count), "<f4")
        if logprobs.size != count:
            raise self._wrong(row, "teacherLogprobs", f"it has {logprobs.size} logprobs for {count} tokens")
        return TeacherColumns(logprobs, self._top(row, columns, count) if self.about["topCount"] > 0 else None)

    def _top(self, row: Row, columns: dict[str, Any], count: int) -> TokenSets:
        import numpy

        data = self._part(row, columns, "teacherTop", count)
        own = numpy.frombuffer(data, "<u4", count)
        total = int(own.sum())
        if len(data) != 4 * (count + 2 * total):
            raise self._wrong(row, "teacherTop", f"its part does not have the bytes that its {count} counts say")
        counts = numpy.zeros(len(row["tokenIds"]), numpy.int32)
        counts[row["promptLength"]:] = own
        return TokenSets(counts, numpy.frombuffer(data, "<i4", total, 4 * count), numpy.frombuffer(data, "<f4", total, 4 * (count + total)))

    def _part(self, row: Row, columns: dict[str, Any], name: str, count: int) -> memoryview:
        part = columns.get(name)
        if part is None or (part["from"], part["rows"]) != (row["promptLength"], count):
            raise self._wrong(row, name, f"its part is {part}, expected {count} tokens from {row['promptLength']} on")
        return self._files.read(part)

    def _wrong(self, row: Row, name: str, why: str) -> ValueError:
        return ValueError(f"Cannot read {name} by {self.about['name']} of {row['rolloutId']}, row {row['segment']}: {why}")


__all__ = ["TeacherColumns", "TeacherFolder"]

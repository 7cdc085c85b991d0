"""Side columns of rows as numpy arrays, from a run's folder or an export. Files are mapped, not copied. Needs numpy."""

from __future__ import annotations

import json
import math
import mmap
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Protocol

from .rows import Row, read_lines, read_objects

if TYPE_CHECKING:
    import numpy

# Columns with a row for each computed token, and columns with a set for each sampled token.
TOKEN_COLUMNS = ("routedExperts", "indexerTopK")
SET_COLUMNS = ("keptTokens", "topLogprobs")
# The types of arrays in exports.
ARRAY_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "float32")


class ColumnSource(Protocol):
    """The bytes of columns. `specs` are the shapes of the run's columns: `{"routedExperts": {"layerCount", "perToken",
    "expertCount"}, …}`.
    """

    specs: dict[str, Any]

    def read(self, part: dict[str, Any]) -> Any:
        """Returns the bytes of a part, as a buffer. Raises KeyError if the source has no such part."""


@dataclass(frozen=True)
class TokenSets:
    """Sets of ids, token by token: the first `counts[0]` ids are those of token 0, the next `counts[1]` those of token
    1.

    `counts` is int32 [tokens], 0 for tokens that were not trained. `ids` is int32 [sum of counts]. `logprobs` is float32
    [sum of counts], or None for kept tokens. The ids are in the engine's order; those of `topLogprobs` are best first.
    """

    counts: numpy.ndarray
    ids: numpy.ndarray
    logprobs: numpy.ndarray | None

    def offsets(self) -> numpy.ndarray:
        """Returns int64 [tokens + 1]: the set of token i is `ids[offsets[i]:offsets[i + 1]]`."""
        import numpy

        return numpy.concatenate([[0], numpy.cumsum(self.counts, dtype=numpy.int64)])


class PartFiles:
    """The parts of columns in a run's folder, found by hash. Reads no bytes until an array is used.

    With `verify`, the bytes of each part are compared with its hash when they are read first. Raises ValueError if a
    line does not describe the place of a part.
    """

    def __init__(self, run: str | Path, *, verify: bool = False) -> None:
        self._folder = Path(run) / "columns"
        self._verify = verify
        self._verified: set[str] = set()
        self._places: dict[str, tuple[str, int, int]] = {}
        self._freed: set[str] = set()
        self._maps: dict[str, memoryview] = {}
        lines = [line for file in sorted(self._folder.glob("*.jsonl")) for line in _places_in(file)]
        # A file exists before a line names it. Another file may have the parts of one that was removed.
        present = {file.name for file in self._folder.glob("*")}
        for key, name, at, size in lines:
            if name in present:
                self._places[key] = (name, at, size)
            elif f"{name}.freed" in present:
                self._freed.add(key)

    def read(self, part: dict[str, Any]) -> memoryview:
        """Returns the bytes of a part. Raises KeyError if the folder has no such part. Raises ValueError if its file
        was cut, or if the bytes are verified and were changed.
        """
        place = self._places.get(part["hash"])
        if place is None:
            why = ("its file was freed after its rows were acknowledged" if part["hash"] in self._freed
                   else f"{self._folder} has none; copy the folder again")
            raise KeyError(f"Cannot read the column part {part['hash']}: {why}")
        name, at, size = place
        if name not in self._maps:
            self._maps[name] = _map(self._folder / name)
        content = self._maps[name][at:at + size]
        if content.nbytes != size:
            raise ValueError(f"Cannot read the column part {part['hash']}: {self._folder / name} ends before it; copy the "
                             "folder again")
        if self._verify and part["hash"] not in self._verified:
            if sha256(content).hexdigest()[:32] != part["hash"]:
                raise ValueError(f"Cannot read the column part {part['hash']}: its bytes in {self._folder / name} were "
                                 "changed; copy the folder again")
            self._verified.add(part["hash"])
        return content


class ColumnFolder(PartFiles):
    """The columns of a run's folder. Raises ValueError if the folder names no columns.

    With `verify`, the bytes of each part are compared with its hash when they are read first, which reads all of them.
    Default: sizes alone are checked.
    """

    def __init__(self, run: str | Path, *, verify: bool = False) -> None:
        folder = Path(run)
        manifest = json.loads((folder / "run.json").read_text("utf-8"))
        specs = (manifest.get("found") or {}).get("columns")
        if not specs:
            raise ValueError(f"Cannot read columns of {folder}: its run.json names none")
        self.specs: dict[str, Any] = specs
        super().__init__(folder, verify=verify)


@dataclass(frozen=True)
class LoadedColumns:
    """Columns in memory, such as those of an attempt that the service delivered. `parts` has the bytes by hash."""

    specs: dict[str, Any]
    parts: dict[str, bytes]

    def read(self, part: dict[str, Any]) -> bytes:
        """Returns the bytes of a part."""
        return self.parts[part["hash"]]


def row_columns(row: Row, source: ColumnSource) -> dict[str, Any]:
    """Returns a row's columns by name. Row i of an array, or set i, is that of token i of the row.

    - `routedExperts`: [rows, layers, experts of a token], uint8 up to 256 experts, else uint16.
    - `indexerTopK`: int32 [rows, layers, positions of a token].
    - `keptTokens`, `topLogprobs`: `TokenSets` over all tokens of the row.

    `rows` is at least the index of the last trained token, and at most the number of tokens minus 1: the engine never
    computed the last sampled token. An array of one part is a view of the source's bytes; several parts are joined
    once. Raises ValueError, naming the row, if a column is missing or does not fit its row.
    """
    columns = row.get("columns") or {}
    missing = [name for name in source.specs if name not in columns]
    if missing:
        raise _wrong(row, missing[0], "the row has none, and its run has it")
    arrays = {name: _token_array(row, source, name) for name in TOKEN_COLUMNS if name in source.specs}
    return {**arrays, **{name: _token_sets(row, source, name) for name in SET_COLUMNS if name in source.specs}}


def _token_array(row: Row, source: ColumnSource, name: str) -> numpy.ndarray:
    import numpy

    spec = source.specs[name]
    kind = "<i4" if name == "indexerTopK" else "u1" if spec["expertCount"] <= 256 else "<u2"
    shape, known, arrays = (spec["layerCount"], spec["perToken"]), 0, []
    for part in row["columns"][name]:
        if part["from"] != known:
            raise _wrong(row, name, f"a part begins at token {part['from']}, not at {known}")
        data, size = source.read(part), part["rows"] * shape[0] * shape[1] * numpy.dtype(kind).itemsize
        if memoryview(data).nbytes != size:
            raise _wrong(row, name, f"a part of {part['rows']} rows has {memoryview(data).nbytes} bytes, expected {size}")
        arrays.append(numpy.frombuffer(data, kind).reshape(part["rows"], *shape))
        known += part["rows"]
    mask = row["lossMask"]
    needed = len(mask) - 1 - mask[::-1].index(1) if 1 in mask else 0
    if known < needed:
        raise _wrong(row, name, f"it has {known} rows, expected at least {needed}")
    if len(arrays) == 1:
        return arrays[0][:len(mask) - 1]
    return numpy.concatenate(arrays or [numpy.empty((0, *shape), kind)])[:len(mask) - 1]


def _token_sets(row: Row, source: ColumnSource, name: str) -> TokenSets:
    import numpy

    mask, words = numpy.asarray(row["lossMask"], dtype=bool), 1 if name == "keptTokens" else 2
    counts = numpy.zeros(len(mask), numpy.int32)
    ids, logprobs = [], []
    for part in row["columns"][name]:
        data, rows = source.read(part), part["rows"]
        size = memoryview(data).nbytes
        own = numpy.frombuffer(data, "<u4", min(rows, size // 4))
        total = int(own.sum())
        if len(own) < rows or size != 4 * (rows + words * total):
            raise _wrong(row, name, f"a part of {rows} rows does not have the bytes that its counts say")
        inside = slice(part["from"], min(part["from"] + rows, len(mask)))
        trained = numpy.zeros(rows, bool)
        trained[:inside.stop - inside.start] = mask[inside]
        kept = numpy.repeat(trained, own)
        counts[inside] = numpy.where(trained, own, 0)[:inside.stop - inside.start]
        ids.append(numpy.frombuffer(data, "<i4", total, 4 * rows)[kept])
        if words == 2:
            logprobs.append(numpy.frombuffer(data, "<f4", total, 4 * (rows + total))[kept])
    if (counts[mask] == 0).any():
        raise _wrong(row, name, f"the trained token {int(numpy.flatnonzero(mask & (counts == 0))[0])} has no entry")
    joined = numpy.concatenate(ids or [numpy.empty(0, "<i4")])
    return TokenSets(counts, joined, numpy.concatenate(logprobs or [numpy.empty(0, "<f4")]) if words == 2 else None)


def _wrong(row: Row, name: str, why: str) -> ValueError:
    return ValueError(f"Cannot read {name} of {row['rolloutId']}, row {row['segment']}: {why}")


def read_export(file: str | Path) -> Iterator[Row]:
    """Yields the records of `turnwright export`, with each array of side columns as a numpy array.

    The arrays are views of the mapped file `FILE.arrays`. Each begins at a multiple of 64 bytes, except where
    verifiers' nodes share the array of their branch. They are C-contiguous and little-endian; their shapes and dtypes are
    those of the trainer's form (docs/trainers.md, "Side columns"). A write into an array changes no file. The lists of
    SkyRL's only object contain arrays. Raises ValueError if a file was cut: a line is torn, an array is not within the
    file, or, at the end, arrays follow those of the rows.
    """
    arrays = _ArraysFile(Path(f"{file}.arrays"))
    for record in read_objects(file, may_grow=False):
        yield arrays.placed_in(record)
    arrays.require_end()


class _ArraysFile:
    """The binary file of an export. Mapped when the first array is read."""

    def __init__(self, file: Path) -> None:
        self._file, self._end = file, 0
        self._content: memoryview | None = None

    def placed_in(self, value: Any) -> Any:
        """Returns the value with arrays in their places."""
        if isinstance(value, dict):
            if value.keys() == {"offset", "shape", "dtype"}:
                return self._array_at(value)
            return {name: self.placed_in(one) for name, one in value.items()}
        # Lists of numbers have no arrays in them.
        if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            return [self.placed_in(one) for one in value]
        return value

    def require_end(self) -> None:
        """Raises ValueError if arrays follow those of the rows."""
        if self._content is not None and self._end != len(self._content):
            raise ValueError(f"Cannot read {self._file}: it has {len(self._content)} bytes, and the arrays of the rows end at "
                             f"{self._end}, so rows are missing; export again")

    def _array_at(self, place: dict[str, Any]) -> numpy.ndarray:
        import numpy

        if place["dtype"] not in ARRAY_TYPES or min(place["offset"], *place["shape"]) < 0:
            raise ValueError(f"Cannot read {self._file}: {place} is no place of an array; export again")
        if self._content is None:
            self._content = _map(self._file)
        kind, count = numpy.dtype(place["dtype"]).newbyteorder("<"), math.prod(place["shape"])
        end = place["offset"] + count * kind.itemsize
        if end > len(self._content):
            raise ValueError(f"Cannot read {self._file}: it ends before an array of its rows; export again")
        self._end = max(self._end, end)
        array: numpy.ndarray = numpy.frombuffer(self._content, kind, count, place["offset"]).reshape(place["shape"])
        return array


def _places_in(file: Path) -> Iterator[tuple[str, str, int, int]]:
    for line in read_lines(file):
        try:
            yield line["hash"], line["file"], line["at"], line["size"]
        except KeyError as error:
            raise ValueError(f"Cannot read {file}: a line has no {error}") from error


def _map(file: Path) -> memoryview:
    """Maps a file. Writes into the memory stay in this process."""
    with open(file, "rb") as opened:
        if opened.seek(0, 2) == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY))


__all__ = ["ColumnFolder", "ColumnSource", "LoadedColumns", "TokenSets", "read_export", "row_columns"]

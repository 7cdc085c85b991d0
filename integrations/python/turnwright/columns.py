"""Side columns of rows as numpy arrays, from a run's folder or an export. Files are mapped, not copied. Needs numpy."""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Protocol

from .rows import Row, read_lines

if TYPE_CHECKING:
    import numpy

# Columns with a row for each computed token, and columns with a set for each sampled token.
TOKEN_COLUMNS = ("routedExperts", "indexerTopK")
SET_COLUMNS = ("keptTokens", "topLogprobs")


class ColumnSource(Protocol):
    """The bytes of columns. `specs` are the run's: `{"routedExperts": {"layerCount", "perToken", "expertCount"}, …}`."""

    specs: dict[str, Any]

    def read(self, part: dict[str, Any]) -> Any:
        """Returns the bytes of a part, as a buffer. Raises KeyError if there are none."""


@dataclass(frozen=True)
class TokenSets:
    """Sets of ids, token by token: the first `counts[0]` ids belong to token 0, the next `counts[1]` to token 1.

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

    Raises ValueError if a line is no place of a part.
    """

    def __init__(self, run: str | Path) -> None:
        self._folder = Path(run) / "columns"
        self._places: dict[str, tuple[str, int, int]] = {}
        self._maps: dict[str, memoryview] = {}
        for file in sorted(self._folder.glob("*.jsonl")):
            for line in read_lines(file):
                try:
                    self._places[line["hash"]] = (line["file"], line["at"], line["size"])
                except KeyError as error:
                    raise ValueError(f"Cannot read {file}: a line has no {error}") from error

    def read(self, part: dict[str, Any]) -> memoryview:
        """Returns the bytes of a part. Raises KeyError if the folder has none."""
        place = self._places.get(part["hash"])
        if place is None:
            raise KeyError(f"Cannot read the column part {part['hash']}: {self._folder} has none; copy the folder again")
        name, at, size = place
        if name not in self._maps:
            self._maps[name] = _map(self._folder / name)
        return self._maps[name][at:at + size]


class ColumnFolder(PartFiles):
    """The columns of a run's folder. Raises ValueError if the folder names no columns."""

    def __init__(self, run: str | Path) -> None:
        folder = Path(run)
        manifest = json.loads((folder / "run.json").read_text("utf-8"))
        specs = (manifest.get("found") or {}).get("columns")
        if not specs:
            raise ValueError(f"Cannot read columns of {folder}: its run.json names none")
        self.specs: dict[str, Any] = specs
        super().__init__(folder)


@dataclass(frozen=True)
class LoadedColumns:
    """Columns in memory, such as those of an attempt that the service delivered. `parts` has the bytes by hash."""

    specs: dict[str, Any]
    parts: dict[str, bytes]

    def read(self, part: dict[str, Any]) -> bytes:
        """Returns the bytes of a part."""
        return self.parts[part["hash"]]


def row_columns(row: Row, source: ColumnSource) -> dict[str, Any]:
    """Returns a row's columns by name. Row i of an array, or set i, belongs to token i of the row.

    - `routedExperts`: [rows, layers, experts of a token], uint8 up to 256 experts, else uint16.
    - `indexerTopK`: int32 [rows, layers, positions of a token].
    - `keptTokens`, `topLogprobs`: `TokenSets` over all tokens of the row.

    `rows` is at least the index of the last trained token, and at most the number of tokens minus 1: nobody computed
    the last sampled token. An array of one part is a view of the source's bytes; several parts are joined once. Raises
    ValueError, naming the row, if a column is missing or does not fit its row.
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
        values = numpy.frombuffer(source.read(part), dtype=kind)
        if values.size != part["rows"] * shape[0] * shape[1]:
            raise _wrong(row, name, f"a part of {part['rows']} rows has {values.size} ids")
        arrays.append(values.reshape(part["rows"], *shape))
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
        own = numpy.frombuffer(data, "<u4", rows)
        total = int(own.sum())
        if memoryview(data).nbytes != 4 * (rows + words * total):
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
    """Yields the records of `turnwright export`, with each array of side columns in its place as a numpy array.

    The arrays are views of the mapped file `FILE.arrays`. Each begins at a multiple of 64 bytes, except where
    verifiers' nodes share the array of their branch. They are C-contiguous and little-endian; their shapes and dtypes are
    those of the trainer's form (docs/trainers.md, "Side columns"). A write into an array changes no file. The lists of
    SkyRL's only object contain arrays. Raises ValueError if an array is not within the file.
    """
    arrays: dict[str, memoryview] = {}
    for record in read_lines(file):
        yield _with_arrays(record, Path(f"{file}.arrays"), arrays)


def _with_arrays(value: Any, file: Path, maps: dict[str, memoryview]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"offset", "shape", "dtype"}:
            if "" not in maps:
                maps[""] = _map(file)
            return _array_at(maps[""], value, file)
        return {name: _with_arrays(one, file, maps) for name, one in value.items()}
    # Lists of numbers have no arrays in them.
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return [_with_arrays(one, file, maps) for one in value]
    return value


def _array_at(content: memoryview, place: dict[str, Any], file: Path) -> numpy.ndarray:
    import numpy

    kind, count = numpy.dtype(place["dtype"]).newbyteorder("<"), 1
    for length in place["shape"]:
        count *= length
    if place["offset"] + count * kind.itemsize > len(content):
        raise ValueError(f"Cannot read {file}: it ends before an array of its rows; export again")
    array: numpy.ndarray = numpy.frombuffer(content, kind, count, place["offset"]).reshape(place["shape"])
    return array


def _map(file: Path) -> memoryview:
    """Maps a file. Writes into the memory stay in this process."""
    with open(file, "rb") as opened:
        if opened.seek(0, 2) == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY))


__all__ = ["ColumnFolder", "ColumnSource", "LoadedColumns", "TokenSets", "read_export", "row_columns"]

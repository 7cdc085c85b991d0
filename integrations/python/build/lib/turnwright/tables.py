"""Rows as numpy arrays, a `datasets.Dataset` or a pandas table: imported where they are asked for."""

from __future__ import annotations

from typing import Any, Iterable, Iterator

from .rows import Row

ARRAY_TYPES = {"tokenIds": "int32", "lossMask": "int8", "logprobs": "float32"}
PLAIN = ("rolloutId", "groupId", "taskId", "segment", "promptLength", "reward", "outcome", "stopReason")


def to_numpy(row: Row) -> dict[str, Any]:
    """A row whose ids are int32, mask int8 and logprobs float32 arrays; all else as it is."""
    import numpy

    arrays = {name: numpy.asarray(row[name], dtype=kind) for name, kind in ARRAY_TYPES.items()}
    return {**row, **arrays}


def to_columns(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Rows with the same members each: a reward that is absent is None."""
    for row in rows:
        yield {**{name: row.get(name) for name in PLAIN}, **{name: row[name] for name in ARRAY_TYPES},
               "policyVersions": row["policyVersions"]}


def to_pandas(rows: Iterable[Row]):
    """A table with a line a row; a reward that is absent is missing, not 0."""
    import pandas

    return pandas.DataFrame(to_columns(rows)).astype({"reward": "Float64"})


def to_dataset(rows: Iterable[Row]):
    """A `datasets.Dataset` with typed list columns."""
    import datasets
    from datasets import Features, Sequence, Value

    lists = {name: Sequence(Value(kind)) for name, kind in ARRAY_TYPES.items()}
    texts = {name: Value("string") for name in ("rolloutId", "groupId", "taskId", "outcome", "stopReason")}
    features = Features({**texts, "segment": Value("int32"), "promptLength": Value("int32"),
                         "reward": Value("float64"), **lists, "policyVersions": Sequence(Value("string"))})
    return datasets.Dataset.from_list(list(to_columns(rows)), features=features)

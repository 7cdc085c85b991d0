"""Rows as numpy arrays, a `datasets.Dataset` or a pandas table. Each library is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator

from .rows import Row

if TYPE_CHECKING:
    import datasets
    import pandas

ARRAY_TYPES = {"tokenIds": "int32", "lossMask": "int8", "logprobs": "float32"}
PLAIN = ("rolloutId", "groupId", "taskId", "segment", "promptLength", "reward", "outcome", "stopReason")
BLANK: Row = {**dict.fromkeys(PLAIN, ""), "segment": 0, "promptLength": 0, "reward": None,
              **{name: [] for name in (*ARRAY_TYPES, "policyVersions")}}


def to_numpy(row: Row) -> dict[str, Any]:
    """Returns a row with ids (int32), mask (int8) and logprobs (float32) as arrays. Other members are unchanged."""
    import numpy

    _require_row(row)
    arrays = {name: numpy.asarray(row[name], dtype=kind) for name, kind in ARRAY_TYPES.items()}
    return {**row, **arrays}


def to_columns(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yields rows with equal members. An absent reward is None."""
    for row in rows:
        _require_row(row)
        yield {**{name: row.get(name) for name in PLAIN}, **{name: row[name] for name in ARRAY_TYPES},
               "policyVersions": row["policyVersions"]}


def _require_row(row: Any) -> None:
    members: Row = row if isinstance(row, dict) else {}
    if {*ARRAY_TYPES, "policyVersions"} <= members.keys():
        return
    name = members.get("rolloutId", row)
    raise ValueError(f"Cannot make a table of {str(name)[:100]!r}: expected rows of samples.jsonl, as read_rows() yields them")


def to_pandas(rows: Iterable[Row]) -> pandas.DataFrame:
    """Returns a table with a line for each row. An absent reward is missing, not 0."""
    import pandas

    columns = list(to_columns(rows))
    # An empty table has the same column types.
    frame = pandas.DataFrame(columns) if columns else pandas.DataFrame([BLANK]).iloc[:0]
    return frame.astype({"reward": "Float64"})


def to_dataset(rows: Iterable[Row]) -> datasets.Dataset:
    """Returns a `datasets.Dataset` with typed list columns."""
    import datasets
    from datasets import Features, Sequence, Value

    lists = {name: Sequence(Value(kind)) for name, kind in ARRAY_TYPES.items()}
    texts = {name: Value("string") for name in ("rolloutId", "groupId", "taskId", "outcome", "stopReason")}
    features = Features({**texts, "segment": Value("int32"), "promptLength": Value("int32"),
                         "reward": Value("float64"), **lists, "policyVersions": Sequence(Value("string"))})
    columns = list(to_columns(rows))
    return datasets.Dataset.from_dict({name: [row[name] for row in columns] for name in features}, features=features)

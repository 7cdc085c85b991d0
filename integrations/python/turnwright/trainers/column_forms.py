"""Side columns of live attempts in the trainers' forms. The exporters build the same arrays (docs/trainers.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..attempt import Attempt, Unfit
from ..columns import LoadedColumns, TokenSets, row_columns
from ..rows import Row
from .several_rows import warn_once

if TYPE_CHECKING:
    import numpy

    from ..client import Client

LIMITS = {"int8": 1 << 7, "uint8": 1 << 8, "int16": 1 << 15, "uint16": 1 << 16, "int32": 1 << 31}


def with_columns(client: Client, attempt: Attempt, names: Sequence[str]) -> Attempt:
    """Returns the attempt with the columns of these names in memory. Call it before the group is acknowledged.

    Warns once of a column that is left out. Raises Unfit if the trainer needs that column: with kept tokens, the
    logprobs are those within the sets.
    """
    there = {name for row in attempt.trained_rows for name in row.get("columns") or {}}
    if "keptTokens" in there and "keptTokens" not in names:
        raise Unfit(f"Cannot hand over {attempt.rollout_id}: its logprobs are over the kept tokens, and this trainer has no "
                    "field for these; play without keptTokens, or use slime, SkyRL or verifiers")
    for name in sorted(there - set(names)):
        warn_once(f"no {name}", f"This trainer has no field for {name}: they are left out of all rows")
    taken = [name for name in names if name in there]
    if not taken:
        return attempt
    specs = {name: client.column_specs().get(name) for name in taken}
    if None in specs.values():
        raise Unfit(f"Cannot read the columns of {attempt.rollout_id}: the service's health does not say their shapes; update "
                    "the service")
    parts = {part["hash"]: part for row in attempt.trained_rows for name in specs
             for part in (row.get("columns") or {}).get(name, [])}
    loaded = LoadedColumns(specs, {key: client.columns(part) for key, part in parts.items()})
    return dataclasses.replace(attempt, columns=loaded)


def columns_of(attempt: Attempt, row: Row) -> dict[str, Any]:
    """Returns the columns of a row by name, as `row_columns()` does. Empty if the run has none."""
    return {} if attempt.columns is None else row_columns(row, attempt.columns)


def computed_row(attempt: Attempt, row: Row) -> Row:
    """Returns the row without the ids after its last sampled id, if the engine did not compute them."""
    found = columns_of(attempt, row)
    known = [len(found[name]) for name in ("routedExperts", "indexerTopK") if name in found]
    if not known or min(known) >= len(row["tokenIds"]) - 1:
        return row
    end = len(row["lossMask"]) - row["lossMask"][::-1].index(1)
    return {**row, **{name: row[name][:end] for name in ("tokenIds", "lossMask", "logprobs", "policyVersions")}}


def copied_end(routes: numpy.ndarray) -> numpy.ndarray:
    """Returns the routes with a copy of the last row after them, as verifiers writes it for an id that was not computed."""
    import numpy

    return numpy.concatenate([routes, routes[-1:]])


def token_array(values: numpy.ndarray, kind: str, rows: int, fill: int = 0) -> numpy.ndarray:
    """Returns the first `rows` rows as `kind`. Rows that the engine did not compute have `fill`.

    Returns a view if type and number of rows are those of `values`.
    """
    import numpy

    if rows <= len(values):
        return values[:rows].astype(kind, copy=False)
    array = numpy.full((rows, *values.shape[1:]), fill, kind)
    array[:len(values)] = values
    return array


def expert_type(attempt: Attempt, kinds: Sequence[str]) -> str:
    """Returns the first of the types that has all ids of the run's experts, or int32."""
    count = attempt.columns.specs["routedExperts"]["expertCount"] if attempt.columns is not None else 0
    return next((kind for kind in kinds if count <= LIMITS[kind]), "int32")


def whole_routes(attempt: Attempt, row: Row, count: int) -> numpy.ndarray | None:
    """Returns the routes of the first `count` ids for verl and prime-rl: uint8 or int16, with zeros in the last row.
    None if the run has no routes.
    """
    found = columns_of(attempt, row).get("routedExperts")
    return None if found is None else token_array(found[:count - 1], expert_type(attempt, ("uint8", "int16")), count)


def ragged(sets: TokenSets, start: int, end: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Returns the ids of the sets of tokens from `start` to `end`, and offsets of length `end - start + 1`, as int32."""
    bounds = sets.offsets()[start:end + 1]
    return sets.ids[bounds[0]:bounds[-1]].astype("int32"), (bounds - bounds[0]).astype("int32")


def support(sets: TokenSets, start: int, end: int, width: int) -> numpy.ndarray:
    """Returns int32 [end - start, width]: the ids of each set, and -1 after them."""
    import numpy

    ids, bounds = ragged(sets, start, end)
    array, counts = numpy.full((end - start, width), -1, numpy.int32), numpy.diff(bounds)
    array[numpy.arange(width) < counts[:, None]] = ids
    return array


def top_lists(sets: TokenSets, start: int, end: int) -> list[list[list[Any]]]:
    """Returns SGLang's lists `[logprob, id, None]` for each token from `start` to `end`. The list of a token that was
    not sampled is empty.
    """
    bounds, logprobs = sets.offsets(), sets.logprobs
    assert logprobs is not None
    return [[[logprob, token, None] for logprob, token in zip(logprobs[a:b].tolist(), sets.ids[a:b].tolist())]
            for a, b in zip(bounds[start:end], bounds[start + 1:end + 1])]

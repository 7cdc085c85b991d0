"""Writes slime's debug dump for `--load-debug-rollout-data`. Needs torch.

    python -m turnwright.slime_dump rows.slime.jsonl --out 'dumps/{rollout_id}.pt' --groups 32

The rows are those of `turnwright export RUN --to slime`. Each file has one step of `--groups` complete groups
(slime's --rollout-batch-size). Rollout ids start at 0. Groups at the end that do not fill a step are reported
and not written.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Iterable, Iterator

from .columns import read_export
from .rows import Row


def steps_of(rows: Iterable[Row], groups: int) -> Iterator[list[Row]]:
    """Yields steps of `groups` complete groups each. The last step may have fewer."""
    step: list[Row] = []
    seen: list[int] = []
    for row in rows:
        if row["reward"] is None:
            raise ValueError(f"Sample {row['index']} has no reward: slime fails on it")
        if not seen or row["group_index"] != seen[-1]:
            if len(seen) == groups:
                yield step
                step, seen = [], []
            seen.append(row["group_index"])
        step.append(row)
    if step:
        yield step


def write_slime_dump(rows: Iterable[Row], template: str, *, groups: int) -> dict[str, Any]:
    """Writes the steps. Returns the files, and the number of groups at the end that did not fill a step."""
    import torch

    if "{rollout_id}" not in template:
        raise ValueError(f"Cannot write to {template}: expected a name with {{rollout_id}} in it")
    files: list[str] = []
    for rollout_id, step in enumerate(steps_of(rows, groups)):
        count = len({row["group_index"] for row in step})
        if count < groups:
            return {"files": files, "left_over": count}
        file = Path(template.format(rollout_id=rollout_id))
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"rollout_id": rollout_id, "samples": [_with_tensors(row) for row in step]}, file)
        files.append(str(file))
    return {"files": files, "left_over": 0}


def _with_tensors(row: Row) -> Row:
    """Returns a row with tensors in place of arrays of side columns."""
    import torch

    return {name: torch.from_numpy(value) if hasattr(value, "dtype") else value for name, value in row.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes slime's debug dump from exported rows.")
    parser.add_argument("rows", help="the output of `turnwright export RUN --to slime`")
    parser.add_argument("--out", required=True, help="the files' name, with {rollout_id} in it")
    parser.add_argument("--groups", type=int, required=True, help="groups a step: --rollout-batch-size")
    arguments = parser.parse_args()
    done = write_slime_dump(read_export(arguments.rows), arguments.out, groups=arguments.groups)
    print(f"{len(done['files'])} steps; {done['left_over']} groups are left over and not written")


if __name__ == "__main__":
    main()

"""Writes tasks as data sets of verl, SkyRL, OpenRLHF and AReaL take them: one row a task, with the keys of each.

    python -m turnwright.tasks --tasks 0-499 > tasks.jsonl
    python -m turnwright.tasks --split test --tasks 0-19 > evaluation.jsonl

`extra_info` is verl's, `task_index` and `split` are SkyRL's and AReaL's, `label` is OpenRLHF's. Without `--split`, the
split is TURNWRIGHT_SPLIT of the trainer's processes: evaluate on a split that the data set names. What the policy is asked is the
environment's: `prompt` is there because the trainers want one, and is not sent. slime has `turnwright.slime_tasks`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .slime_tasks import add_tasks


def task_row(index: int, split: str | None = None) -> dict[str, Any]:
    """A task as the trainers' shims look for it."""
    name, place = str(index), {}
    if split is not None:
        name, place = f"{split}/{index}", {"split": split}
    return {"prompt": [{"role": "user", "content": name}], "label": name, "task_index": index, **place,
            "extra_info": {"index": index, **place}, "data_source": "turnwright", "reward_model": {"ground_truth": ""}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tasks as data sets of trainers take them.")
    parser.add_argument("--split", help="which tasks (default: TURNWRIGHT_SPLIT of the trainer)")
    add_tasks(parser)
    given = parser.parse_args()
    for index in given.tasks:
        print(json.dumps(task_row(index, given.split)))


if __name__ == "__main__":
    main()

"""Writes tasks as a data set for verl, SkyRL, OpenRLHF and AReaL: one row a task, with the keys of each trainer.

    python -m turnwright.tasks --tasks 0-499 > tasks.jsonl
    python -m turnwright.tasks --split test --tasks 0-19 > evaluation.jsonl

verl reads `extra_info`, SkyRL and AReaL read `task_index` and `split`, OpenRLHF reads `label`. Without `--split`, the
split is TURNWRIGHT_SPLIT of the trainer's processes; use `--split` for an evaluation. The trainers require `prompt`, but
it is not sent: the environment supplies the prompt. For slime, use `turnwright.slime_tasks`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .slime_tasks import add_tasks


def task_row(index: int, split: str | None = None) -> dict[str, Any]:
    """Returns a task with the keys that the trainers' shims read."""
    name, place = str(index), {}
    if split is not None:
        name, place = f"{split}/{index}", {"split": split}
    return {"prompt": [{"role": "user", "content": name}], "label": name, "task_index": index, **place,
            "extra_info": {"index": index, **place}, "data_source": "turnwright", "reward_model": {"ground_truth": ""}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tasks as a data set for trainers.")
    parser.add_argument("--split", help="split of the tasks (default: TURNWRIGHT_SPLIT of the trainer)")
    add_tasks(parser)
    given = parser.parse_args()
    for index in given.tasks:
        print(json.dumps(task_row(index, given.split)))


if __name__ == "__main__":
    main()

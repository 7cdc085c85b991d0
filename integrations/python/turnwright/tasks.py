"""Writes tasks as data sets of verl, SkyRL, OpenRLHF and AReaL take them: one row a task, with the keys of each.

    python -m turnwright.tasks --tasks 0-499 > tasks.jsonl

`extra_info.index` is verl's, `task_index` SkyRL's and AReaL's, `label` OpenRLHF's. What the policy is asked is the
environment's: `prompt` is there because the trainers want one, and is not sent. slime has `turnwright.slime_tasks`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from .slime_tasks import add_tasks


def task_row(index: int) -> dict[str, Any]:
    """A task as the trainers' shims look for its index."""
    return {"prompt": [{"role": "user", "content": str(index)}], "label": str(index), "task_index": index,
            "extra_info": {"index": index}, "data_source": "turnwright", "reward_model": {"ground_truth": ""}}


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tasks as data sets of trainers take them.")
    add_tasks(parser)
    for index in parser.parse_args().tasks:
        print(json.dumps(task_row(index)))


if __name__ == "__main__":
    main()

"""Tasks that consist of a seed."""

from __future__ import annotations

from typing import Any


def seeded_tasks(what: str, size: int, test_size: int, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Returns the tasks of the splits `train` and `test`. No seed is in both splits.

    Args:
        what: The environment, in words.
        size: Number of tasks to train on.
        test_size: Number of tasks of the split `test`. 0 for no such split.
        seed: The seed of the first task. The others follow it.
    """
    tasks = [{"instruction": f"{what}, seed {one}", "seed": one} for one in range(seed, seed + size + test_size)]
    return {"train": tasks[:size], **({"test": tasks[size:]} if test_size > 0 else {})}

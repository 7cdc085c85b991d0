"""TRL: the groups in the prompts of all ranks, and the seeds of their attempts."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from ..attempt import Response
from ..client import Client
from .one_play import Play
from .play import sampling_of
from .seeds import seed_of
from .task_name import read_task


def groups_of(prompts: Iterable[Any], size: int | None) -> list[tuple[Any, int]]:
    """Returns the groups of consecutive equal prompts, each with its length, at most `size`.

    TRL repeats each prompt `num_generations` times, and splits the rows into groups of this size.
    """
    groups: list[tuple[Any, int]] = []
    for prompt in prompts:
        if groups and groups[-1][0] == prompt and groups[-1][1] != size:
            groups[-1] = (prompt, groups[-1][1] + 1)
        else:
            groups.append((prompt, 1))
    return groups


def mode_of(trainer: Any) -> str:
    """Returns TRL's name of the mode: `train` or `eval`."""
    return "train" if getattr(trainer.model, "training", True) else "eval"


def group_size(trainer: Any) -> int | None:
    """Returns the number of attempts in a group, in the trainer's mode."""
    name = "num_generations" if mode_of(trainer) == "train" else "num_generations_eval"
    size = getattr(trainer, name, None)
    return None if size is None else int(size)


def plays_of(client: Client, trainer: Any, prompts: Iterable[Any], seeds: GroupSeeds) -> list[Play]:
    """Creates a play for each group in the prompts of all ranks."""
    groups = groups_of(prompts, group_size(trainer))
    tasks = [read_task(prompt) for prompt, _ in groups]
    return [Play(client, split=split, task=task, samples=count, seed=seed, sampling=sampling_of(trainer))
            for (split, task), (_, count), seed in zip(tasks, groups, seeds.next_call(trainer, len(groups)))]


def columns_of(rows: Sequence[tuple[Response, float | None]]) -> dict[str, list[Any]]:
    """Returns the columns of a rollout_func's result, from rows with their rewards."""
    return {"prompt_ids": [row.prompt_ids for row, _ in rows], "completion_ids": [row.response_ids for row, _ in rows],
            "logprobs": [row.logprobs for row, _ in rows], "env_mask": [row.mask for row, _ in rows],
            "env_reward": [reward for _, reward in rows]}


def component_columns(components: Sequence[dict[str, float]]) -> dict[str, list[Any]]:
    """Returns a column for each component of a reward, named as in the exported file. None where an attempt has none."""
    names = dict.fromkeys(name for one in components for name in one)
    return {f"env_reward_{name}": [one.get(name) for one in components] for name in names}


class GroupSeeds:
    """Seeds of groups by step, by call within the step, and by position among the groups of all ranks: the same on any
    number of ranks.

    A step may have several calls, with gradient accumulation or in an evaluation. All evaluations use the same seeds,
    so that they are comparable.
    """

    def __init__(self) -> None:
        self._at: tuple[str, int] | None = None
        self._calls = 0

    def next_call(self, trainer: Any, count: int) -> list[int]:
        """Returns the seeds of a call's groups."""
        at = (mode_of(trainer), int(trainer.state.global_step))
        self._calls = self._calls + 1 if at == self._at else 0
        self._at = at
        return [seed_of(*(at if at[0] == "train" else at[:1]), self._calls, group) for group in range(count)]

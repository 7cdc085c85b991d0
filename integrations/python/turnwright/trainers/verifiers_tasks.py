"""verifiers: the taskset that goes with `verifiers_server`: tasks of the service by their indexes."""

from __future__ import annotations

from collections.abc import Iterable

from verifiers.v1.configs.taskset import TasksetConfig
from verifiers.v1.task import Task, TaskData
from verifiers.v1.taskset import Taskset

from ..slime_tasks import indexes_of


class TurnwrightData(TaskData):
    """One task; the service's environment has its prompt."""

    task_index: int
    split: str = "train"


class TurnwrightTask(Task[TurnwrightData]):
    """Played and scored by the service."""


class TurnwrightConfig(TasksetConfig):
    """Which tasks: indexes and ranges such as `0-499`."""

    tasks: str = "0-499"
    split: str = "train"


class TurnwrightTaskset(Taskset[TurnwrightTask, TurnwrightConfig]):
    """The tasks that the configuration names."""

    def load(self) -> Iterable[TurnwrightTask]:
        for index in indexes_of(self.config.tasks):
            yield TurnwrightTask(TurnwrightData(task_index=index, split=self.config.split), self.config.task)


__all__ = ["TurnwrightTaskset"]

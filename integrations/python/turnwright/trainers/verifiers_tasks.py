"""verifiers: the taskset for `verifiers_server`. It names tasks of the service by index."""

from __future__ import annotations

from collections.abc import Iterable

from verifiers.v1.configs.taskset import TasksetConfig
from verifiers.v1.task import Task, TaskData
from verifiers.v1.taskset import Taskset

from ..slime_tasks import indexes_of


class TurnwrightData(TaskData):
    """A task. Its prompt comes from the service's environment."""

    task_index: int
    split: str = "train"


class TurnwrightTask(Task[TurnwrightData]):
    """A task that the service plays and scores."""


class TurnwrightConfig(TasksetConfig):
    """The tasks, as indexes and ranges such as `0-499`."""

    tasks: str = "0-499"
    split: str = "train"


class TurnwrightTaskset(Taskset[TurnwrightTask, TurnwrightConfig]):
    """The tasks of the configuration."""

    def load(self) -> Iterable[TurnwrightTask]:
        for index in indexes_of(self.config.tasks):
            yield TurnwrightTask(TurnwrightData(task_index=index, split=self.config.split), self.config.task)


__all__ = ["TurnwrightTaskset"]

"""Turnwright's rows, rollout service and environments for Python. No dependencies."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attempt import Attempt, Group, Response, TrainerGroup, Unfit, lineage_of, to_response
    from .client import Batch, Client, ServiceError, ServiceUnreachable
    from .columns import ColumnFolder, ColumnSource, LoadedColumns, TokenSets, read_export, row_columns
    from .doctor import Diagnosis, LiveLogprobs, TrainerLogprobs
    from .environments import BadEnvironment, Context, Environment, Played, Refused, TextEnvironment, TextEpisode, refuse
    from .metrics import MetricsFile, log_to, pass_hat_k, step_metrics
    from .rows import Row, group_rows, read_episodes, read_lines, read_rows
    from .started_service import ServiceFailed, StartedService, connect
    from .tables import to_dataset, to_numpy, to_pandas
    from .teachers import TeacherColumns, TeacherFolder

# The names of each module. A module is imported when one of its names is used first: an environment starts faster.
_NAMES = {
    "attempt": "Attempt Group Response TrainerGroup Unfit lineage_of to_response",
    "client": "Batch Client ServiceError ServiceUnreachable",
    "columns": "ColumnFolder ColumnSource LoadedColumns TokenSets read_export row_columns",
    "doctor": "Diagnosis LiveLogprobs TrainerLogprobs",
    "environments": "BadEnvironment Context Environment Played Refused TextEnvironment TextEpisode refuse",
    "metrics": "MetricsFile log_to pass_hat_k step_metrics",
    "rows": "Row group_rows read_episodes read_lines read_rows",
    "started_service": "ServiceFailed StartedService connect",
    "tables": "to_dataset to_numpy to_pandas",
    "teachers": "TeacherColumns TeacherFolder",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Attempt", "BadEnvironment", "Batch", "Client", "ColumnFolder", "ColumnSource", "Context", "Diagnosis", "Environment",
    "Group", "LiveLogprobs", "LoadedColumns", "MetricsFile", "Played", "Refused", "Response", "Row", "ServiceError",
    "ServiceFailed", "ServiceUnreachable", "StartedService", "TeacherColumns", "TeacherFolder", "TextEnvironment", "TextEpisode",
    "TokenSets", "TrainerGroup", "TrainerLogprobs", "Unfit", "connect", "group_rows", "lineage_of", "log_to",
    "pass_hat_k", "read_episodes", "read_export", "read_lines", "read_rows", "refuse", "row_columns", "step_metrics",
    "to_dataset", "to_numpy", "to_pandas", "to_response",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'turnwright' has no attribute '{name}'")
    value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

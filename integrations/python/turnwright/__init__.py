"""Turnwright's rows and rollout service for Python. No dependencies."""

from .attempt import Attempt, Group, Response, TrainerGroup, Unfit, lineage_of, to_response
from .client import Batch, Client, ServiceError, ServiceUnreachable
from .columns import ColumnFolder, ColumnSource, LoadedColumns, TokenSets, read_export, row_columns
from .doctor import TrainerLogprobs
from .metrics import MetricsFile, log_to, pass_hat_k, step_metrics
from .rows import Row, group_rows, read_episodes, read_lines, read_rows
from .tables import to_dataset, to_numpy, to_pandas
from .teachers import TeacherColumns, TeacherFolder

__all__ = [
    "Attempt", "Batch", "Client", "ColumnFolder", "ColumnSource", "Group", "LoadedColumns", "MetricsFile", "Response", "Row",
    "ServiceError", "ServiceUnreachable", "TeacherColumns", "TeacherFolder", "TokenSets", "TrainerGroup", "TrainerLogprobs", "Unfit", "group_rows", "lineage_of", "log_to",
    "pass_hat_k", "read_episodes", "read_export", "read_lines", "read_rows", "row_columns", "step_metrics", "to_dataset", "to_numpy", "to_pandas", "to_response",
]

"""Turnwright's rows and rollout service for Python. No dependencies."""

from .rows import Row, group_rows, read_episodes, read_lines, read_rows

__all__ = ["Row", "group_rows", "read_episodes", "read_lines", "read_rows"]

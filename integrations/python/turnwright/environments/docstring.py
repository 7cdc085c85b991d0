"""Docstrings of tools: the description of the tool for the model, and the descriptions of its arguments (Google's
style).
"""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

_HEADING = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.M)
_ARGUMENT = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class Docstring(NamedTuple):
    """The parts of a tool's docstring that a model reads."""

    description: str
    arguments: dict[str, str]


def read_docstring(function: Any) -> Docstring:
    """Returns the text before the first section, and the descriptions below `Args:` by name."""
    text = inspect.getdoc(function) or ""
    parts = _HEADING.split(text)
    sections = dict(zip(parts[1::2], parts[2::2]))
    arguments: dict[str, str] = {}
    for heading in ("Args", "Arguments", "Parameters"):
        arguments.update(_read_arguments(sections.get(heading, "")))
    return Docstring(parts[0].strip(), arguments)


def _read_arguments(section: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    indent, name = "", ""
    for line in section.splitlines():
        match = _ARGUMENT.match(line)
        if match and (not found or match[1] == indent):
            indent, name = match[1], match[2]
            found[name] = [match[3].strip()]
        elif name and line.strip():
            found[name].append(line.strip())
    return {name: " ".join(part for part in parts if part) for name, parts in found.items()}

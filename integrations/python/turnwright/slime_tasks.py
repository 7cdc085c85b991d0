"""Writes tasks as slime's `--prompt-data` takes them: a prompt is a task's index.

    python -m turnwright.slime_tasks --split train --tasks 0-499 > tasks.jsonl

For slime: `--prompt-data tasks.jsonl --input-key prompt --metadata-key metadata`.
"""

from __future__ import annotations

import argparse
import json


def indexes_of(text: str) -> list[int]:
    """The indexes that `0-2,7` names: 0, 1, 2 and 7. Raises ValueError where it names none, or one twice."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise ValueError(f"Cannot read {part!r}: expected an index or a range such as 0-499")
        indexes = range(int(first), int(last or first) + 1)
        if not indexes:
            raise ValueError(f"Cannot read {part!r}: the range ends before it begins")
        found += indexes
    if len(set(found)) < len(found) or not found:
        raise ValueError(f"Cannot use {text!r}: it names no task, or one twice")
    return found


def add_tasks(parser: argparse.ArgumentParser) -> None:
    """The option that `indexes_of` reads; what it refuses is told as argparse tells it."""

    def read(text: str) -> list[int]:
        try:
            return indexes_of(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    parser.add_argument("--tasks", required=True, type=read, help="such as 0-499")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tasks as slime's --prompt-data takes them.")
    parser.add_argument("--split", default="train")
    add_tasks(parser)
    arguments = parser.parse_args()
    for index in arguments.tasks:
        print(json.dumps({"prompt": str(index), "metadata": {"split": arguments.split}}))


if __name__ == "__main__":
    main()

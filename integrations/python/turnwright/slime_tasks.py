"""Writes tasks for slime's `--prompt-data`: a prompt is a task's index.

    python -m turnwright.slime_tasks --split train --tasks 0-499 > tasks.jsonl

For slime: `--prompt-data tasks.jsonl --input-key prompt --metadata-key metadata`.
"""

from __future__ import annotations

import argparse
import json


def indexes_of(text: str) -> list[int]:
    """Reads indexes: `0-2,7` is 0, 1, 2 and 7. Raises ValueError if there is no index, or if an index occurs twice."""
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
    """Adds the option `--tasks`. argparse reports the values that `indexes_of` refuses."""

    def read(text: str) -> list[int]:
        try:
            return indexes_of(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    parser.add_argument("--tasks", required=True, type=read, help="such as 0-499")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes tasks for slime's --prompt-data.")
    parser.add_argument("--split", default="train")
    add_tasks(parser)
    arguments = parser.parse_args()
    for index in arguments.tasks:
        print(json.dumps({"prompt": str(index), "metadata": {"split": arguments.split}}))


if __name__ == "__main__":
    main()

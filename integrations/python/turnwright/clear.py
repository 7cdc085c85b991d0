"""Clears an earlier run's requests to the rollout service. Call it before a job starts again.

    TURNWRIGHT_URL=http://127.0.0.1:8799 python -m turnwright.clear my-run

It cancels the run's unfinished batches and forgets its groups. `my-run` is the run's TURNWRIGHT_RUN.
"""

from __future__ import annotations

import argparse

from .trainers.play import connect
from .trainers.run_name import in_keys


def main() -> None:
    parser = argparse.ArgumentParser(description="Clears an earlier run's requests to the service.")
    parser.add_argument("run", help="the run's TURNWRIGHT_RUN")
    count = connect().clear(in_keys(parser.parse_args().run))
    print(f"{count} unfinished batches are cancelled")


if __name__ == "__main__":
    main()

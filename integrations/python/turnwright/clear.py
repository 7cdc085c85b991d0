"""Clears what a run that is gone had asked the rollout service for: before a job is started anew.

    TURNWRIGHT_URL=http://127.0.0.1:8799 python -m turnwright.clear my-run

Its unfinished batches are cancelled and its groups forgotten. `my-run` is what TURNWRIGHT_RUN was for it.
"""

from __future__ import annotations

import argparse

from .trainers.play import connect
from .trainers.run_name import in_keys


def main() -> None:
    parser = argparse.ArgumentParser(description="Clears what a run that is gone had asked the service for.")
    parser.add_argument("run", help="its TURNWRIGHT_RUN")
    count = connect().clear(in_keys(parser.parse_args().run))
    print(f"{count} unfinished batches are cancelled")


if __name__ == "__main__":
    main()

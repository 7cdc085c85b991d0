"""TRL's AsyncDistillationTrainer: `rollout_worker=ExportedRows("rows.jsonl")` for rows that a teacher has scored."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

from trl.experimental.async_distillation.async_rollout_worker import RolloutSample

from ..columns import read_export
from .played import put
from .trl_teacher_sample import to_sample


class ExportedRows:
    """Hands over the rows of an exported file once, in its order. Raises in `check_health()` after the last one.

    A row gets the version that the trainer has when the row is queued, because the rows of a file do not become stale.
    Choose a queue of at most the rows of a step (`ahead`).
    """

    def __init__(self, file: str | Path, ahead: int = 64) -> None:
        self.rollout_buffer: queue.Queue[RolloutSample] = queue.Queue(maxsize=ahead)
        self.metrics_queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._file, self._version = file, 0
        self._trouble: Exception | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(self._stopped,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def update_model_version(self, model_version: int) -> None:
        self._version = model_version

    def check_health(self, stale_after_s: float) -> None:
        if self._trouble is not None:
            raise RuntimeError(f"The rows of {self._file} have ended: {self._trouble}") from self._trouble

    def _work(self, stopped: threading.Event) -> None:
        prompts: dict[Any, int] = {}
        try:
            for record in read_export(self._file):
                sample = to_sample(record, prompts.setdefault(record["group"], len(prompts)), self._version)
                put(self.rollout_buffer, sample, stopped)
                if stopped.is_set():
                    return
            self._trouble = EOFError("all of them were handed over; set max_steps to fewer, or export more")
        except Exception as error:
            self._trouble = error

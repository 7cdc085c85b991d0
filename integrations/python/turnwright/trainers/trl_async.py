"""TRL's AsyncGRPOTrainer: `rollout_worker=TurnwrightWorker(tasks)`, with `FolderTransfer` of `trl_weights`."""

from __future__ import annotations

import queue
import threading
from itertools import cycle

from .one_play import Play
from .play import connect
from .played import put
from .seeds import seed_of
from .several_rows import group_advantages
from .task_name import read_task
from .trl_sample import to_samples


class TurnwrightWorker:
    """Plays groups, cycling through the tasks. Each row carries its attempt's reward minus the group's mean."""

    def __init__(self, tasks: list[int | str], samples: int = 8, ahead: int = 64, temperature: float = 1.0) -> None:
        if not tasks:
            raise ValueError("Cannot train without tasks: name at least one")
        self.rollout_buffer, self.metrics_queue = queue.Queue(maxsize=ahead), queue.Queue()
        self._tasks, self._samples, self._sampling = [read_task(one) for one in tasks], samples, {"temperature": temperature}
        self._stopped, self._thread, self._play, self._trouble = threading.Event(), None, None, None

    def start(self) -> None:
        self._stopped, self._trouble = threading.Event(), None
        self._thread = threading.Thread(target=self._work, args=(self._stopped,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._play is not None:
            self._play.give_up()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def update_model_version(self, model_version: int) -> None:
        """Does nothing: FolderTransfer announces the version."""

    def check_health(self, stale_after_s: float) -> None:
        if self._trouble is not None:
            raise RuntimeError("The worker has stopped: no more rollouts follow") from self._trouble

    def _work(self, stopped: threading.Event) -> None:
        try:
            for number, (split, task) in enumerate(cycle(self._tasks)):
                self._play = Play(connect(), split=split, task=task, samples=self._samples,
                                  seed=seed_of("group", number), sampling=self._sampling)
                if stopped.is_set():
                    return
                attempts = self._play.scored()
                for attempt, own in zip(attempts, group_advantages([one.reward for one in attempts], over_std=False)):
                    for sample in to_samples(attempt, own, number):
                        put(self.rollout_buffer, sample, stopped)
        except Exception as error:
            self._trouble = None if stopped.is_set() else error

"""TRL's AsyncGRPOTrainer: `rollout_worker=TurnwrightWorker(tasks)`, with `FolderTransfer` of `trl_weights`."""

from __future__ import annotations

import queue
import threading
from itertools import cycle
from statistics import fmean

import numpy as np
from trl.experimental.async_grpo.async_rollout_worker import RolloutSample

from ..attempt import Attempt, sampled_versions
from .play import connect, play_scored


class TurnwrightWorker:
    """Plays groups over the tasks again and again; advantages are rewards less the group's mean."""

    def __init__(self, tasks: list[int], samples: int = 8, ahead: int = 64, temperature: float = 1.0) -> None:
        self.rollout_buffer, self.metrics_queue = queue.Queue(maxsize=ahead), queue.Queue()
        self._tasks, self._samples, self._sampling = tasks, samples, {"temperature": temperature}
        self._is_stopped, self._trouble = False, None

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def stop(self) -> None:
        self._is_stopped = True

    def update_model_version(self, model_version: int) -> None:
        """FolderTransfer has announced it."""

    def check_health(self, stale_after_s: float) -> None:
        if self._trouble is not None:
            raise RuntimeError("No more rollouts come") from self._trouble

    def _work(self) -> None:
        try:
            for number, task in enumerate(cycle(self._tasks)):
                attempts = play_scored(connect(), task=task, samples=self._samples,
                                       seed=1000 * number, sampling=self._sampling)
                mean = fmean(attempt.reward for attempt in attempts)
                if self._is_stopped:
                    return
                for attempt in attempts:
                    self.rollout_buffer.put(to_sample(attempt, attempt.reward - mean, number))
        except Exception as error:
            self._trouble = error


def to_sample(attempt: Attempt, advantage: float, group: int) -> RolloutSample:
    """Mask and logprobs over the whole row, unshifted."""
    row = attempt.response()
    mask = np.array(row.over_whole(row.mask, 0))
    return RolloutSample(
        prompt=[], completion=[], input_ids=np.array(row.ids), completion_mask=mask, group_id=group,
        old_log_probs=np.array(row.over_whole(row.logprobs, 0.0), dtype=np.float32), advantage=advantage,
        model_version=min(sampled_versions(row.versions, row.mask)), metrics={"reward": float(attempt.reward)})

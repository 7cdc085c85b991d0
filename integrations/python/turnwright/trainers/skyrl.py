"""SkyRL: a generator. `env_extras[i]["task_index"]` names the task."""

from __future__ import annotations

import asyncio
from collections import Counter

from skyrl.train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput

from .play import connect, sampling_of
from .played import played_once
from .seeds import drawn_seed, seed_of
from .task_name import read_task

STOP_REASONS = {"completed": "stop", "truncated": "length"}


class TurnwrightGenerator(GeneratorInterface):
    """Plays all trajectories of a batch at once. The service bounds the number of running ones."""

    def __init__(self) -> None:
        self._step, self._seen = None, Counter()

    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput:
        client, extras = connect(), input_batch["env_extras"]
        sampling, tasks = sampling_of(input_batch.get("sampling_params")), [_task_of(one) for one in extras]
        plays = [asyncio.ensure_future(played_once(client, split=split, task=task, seed=seed, sampling=sampling))
                 for (split, task), seed in zip(tasks, self._seeds(input_batch, len(tasks)))]
        try:
            attempts = await asyncio.gather(*plays)
        finally:
            # After a failure or a cancellation, the other attempts have no reader.
            for play in plays:
                play.cancel()
            await asyncio.gather(*plays, return_exceptions=True)
        rows = [attempt.response() for attempt in attempts]
        return GeneratorOutput(
            prompt_token_ids=[row.prompt_ids for row in rows], response_ids=[row.response_ids for row in rows],
            rewards=[float(attempt.reward) for attempt in attempts], loss_masks=[row.mask for row in rows],
            stop_reasons=[STOP_REASONS[attempt.outcome] for attempt in attempts], rollout_metrics={},
            rollout_logprobs=[row.logprobs for row in rows], trajectory_ids=input_batch.get("trajectory_ids"))

    def _seeds(self, batch: GeneratorInput, count: int) -> list[int]:
        """Returns seeds by step, phase, prompt and repetition, the same after a restart from a checkpoint."""
        about, ids = batch.get("batch_metadata"), batch.get("trajectory_ids")
        if about is None or ids is None:
            return [drawn_seed() for _ in range(count)]
        if about.global_step != self._step:
            self._step, self._seen = about.global_step, Counter()
        return [self._seed((about.training_phase, about.global_step, one.instance_id, one.repetition_id)) for one in ids]

    def _seed(self, name: tuple) -> int:
        # A step may have a prompt twice.
        self._seen[name] += 1
        return seed_of(*name, self._seen[name])


def _task_of(extra: dict) -> tuple[str, int]:
    return read_task(extra["task_index"], extra.get("split"))

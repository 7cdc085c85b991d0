"""SkyRL: a generator. `env_extras[i]["task_index"]` names the task."""

from __future__ import annotations

import asyncio

from skyrl.train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput

from .play import connect, play_scored, sampling_of

STOP_REASONS = {"completed": "stop", "truncated": "length"}


class TurnwrightGenerator(GeneratorInterface):
    """Plays every trajectory of a batch at once; the service bounds how many run."""

    def __init__(self) -> None:
        self._calls = 0

    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput:
        self._calls += 1
        client, extras = connect(), input_batch["env_extras"]
        sampling = sampling_of(input_batch.get("sampling_params"))

        def play(place: int):
            (attempt,) = play_scored(client, task=int(extras[place]["task_index"]),
                                     seed=1_000_000 * self._calls + place, sampling=sampling)
            return attempt

        attempts = await asyncio.gather(*(asyncio.to_thread(play, place) for place in range(len(extras))))
        rows = [attempt.response() for attempt in attempts]
        return GeneratorOutput(
            prompt_token_ids=[row.prompt_ids for row in rows], response_ids=[row.response_ids for row in rows],
            rewards=[float(attempt.reward) for attempt in attempts], loss_masks=[row.mask for row in rows],
            stop_reasons=[STOP_REASONS[attempt.outcome] for attempt in attempts], rollout_metrics={},
            rollout_logprobs=[row.logprobs for row in rows], trajectory_ids=input_batch.get("trajectory_ids"))

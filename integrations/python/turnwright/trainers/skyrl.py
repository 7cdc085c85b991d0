"""SkyRL: a generator. `env_extras[i]["task_index"]` names the task."""

from __future__ import annotations

from collections import Counter

from skyrl.train.generators.base import GeneratorInput, GeneratorInterface, GeneratorOutput

from .one_play import Play
from .play import connect, sampling_of
from .played import all_played
from .seeds import drawn_seed, seed_of
from .skyrl_rows import to_output
from .task_name import read_task


class TurnwrightGenerator(GeneratorInterface):
    """Plays all trajectories of a batch concurrently. The service limits the number of running attempts. `cfg` is
    SkyRL's whole configuration.
    """

    def __init__(self, cfg) -> None:
        self._cfg, self._step, self._seen = cfg, None, Counter()

    async def generate(self, input_batch: GeneratorInput) -> GeneratorOutput:
        client, extras = connect(), input_batch["env_extras"]
        sampling, tasks = sampling_of(input_batch.get("sampling_params")), [_task_of(one) for one in extras]
        plays = [Play(client, split=split, task=task, seed=seed, sampling=sampling, columns=("routedExperts", "keptTokens"))
                 for (split, task), seed in zip(tasks, self._seeds(input_batch, len(tasks)))]
        attempts = [attempt for (attempt,) in await all_played(plays)]
        return to_output(attempts, input_batch.get("trajectory_ids"), self._cfg)

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

"""slime: `--rollout-function-path turnwright.trainers.slime_batch.generate_rollout`, a whole step at a time. Set
`--custom-generate-function-path turnwright.trainers.slime.generate` as well, for the evaluation."""

from __future__ import annotations

import uuid

from slime.rollout.base_types import RolloutFnTrainOutput
from slime.rollout.filter_hub.base_types import call_dynamic_filter
from slime.utils.misc import load_function

from ..attempt import Unfit
from .one_play import REFILLS
from .play import connect, sampling_of
from .run_name import RUN
from .seeds import drawn_seed
from .slime_rewards import remedies
from .slime_sample import check, fill, with_sets
from .take_over import Versions
from .task_name import read_task

versions = Versions()


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """Plays a step. Takes groups as they finish, and replaces failed and filtered ones."""
    if evaluation:
        from slime.rollout.sglang_rollout import generate_rollout as by_sample  # calls slime.generate()
        return by_sample(args, rollout_id, data_source, evaluation=True)
    check(args)
    client, path = connect(), getattr(args, "dynamic_sampling_filter_path", None)
    keep, taken, fruitless = load_function(path) if path else None, [], 0
    versions.announce(client, rollout_id)  # slime updated the engines itself
    sampling = sampling_of({"temperature": args.rollout_temperature, "top_k": getattr(args, "rollout_top_k", -1)})
    while len(taken) < args.rollout_batch_size:
        drawn, scored = data_source.get_samples(args.rollout_batch_size - len(taken)), 0
        for group, played in _play(client, f"{RUN}/{rollout_id}", drawn, sampling):
            if not all(attempt.is_scored for attempt in played.attempts):
                continue
            own = [fill(sample, attempt, "slime", remedies(args)) for sample, attempt in zip(group, with_sets(args, client, played))]
            scored += 1
            if keep is None or call_dynamic_filter(keep, args, own).keep:
                taken.append(own)
        fruitless = 0 if scored else fruitless + 1
        if fruitless > REFILLS:
            raise Unfit(f"No group of rollout {rollout_id} was completely scored in {fruitless} draws")
    return RolloutFnTrainOutput(samples=taken)


def _play(client, key, drawn, sampling):
    asked = [read_task(group[0].prompt, group[0].metadata.get("split")) for group in drawn]
    batches = [client.submit(key=f"{key}/{uuid.uuid4().hex}", tasks=[task], split=split, samples=len(group),
                             seed=drawn_seed() if group[0].index is None else group[0].index, sampling=sampling)
               for group, (split, task) in zip(drawn, asked)]
    for batch, group in zip(batches, drawn):
        for played in client.groups(batch.batch):
            yield group, played
            client.acknowledge(played.cursor, batch.batch)

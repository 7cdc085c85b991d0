"""slime: `--rollout-function-path turnwright.trainers.slime_batch.generate_rollout`, a whole step at a time. Give
`--custom-generate-function-path turnwright.trainers.slime.generate` as well: evaluation goes by it."""

from __future__ import annotations

import uuid

from slime.rollout.base_types import RolloutFnTrainOutput
from slime.rollout.filter_hub.base_types import call_dynamic_filter
from slime.utils.misc import load_function

from .play import RUN, connect, split
from .slime_sample import check, fill
from .take_over import announce


def generate_rollout(args, rollout_id, data_source, evaluation=False):
    """A whole step: groups come as they finish; what fails or is filtered out is drawn anew."""
    if evaluation:
        from slime.rollout.sglang_rollout import generate_rollout as by_sample  # calls slime.generate()

        return by_sample(args, rollout_id, data_source, evaluation=True)
    check(args)
    client, path = connect(), getattr(args, "dynamic_sampling_filter_path", None)
    keep, taken = load_function(path) if path else None, []
    announce(client, rollout_id)  # slime has updated the engines itself
    sampling = {"temperature": args.rollout_temperature}
    while len(taken) < args.rollout_batch_size:
        drawn = data_source.get_samples(args.rollout_batch_size - len(taken))
        batches = [client.submit(key=f"{RUN}/{rollout_id}/{uuid.uuid4().hex}", tasks=[int(group[0].prompt)],
                                 split=group[0].metadata.get("split", split()), samples=len(group),
                                 seed=group[0].index, sampling=sampling)
                   for group in drawn]
        for batch, group in zip(batches, drawn):
            for played in client.groups(batch.batch):
                client.acknowledge(played.cursor, batch.batch)
                if not all(attempt.is_scored for attempt in played.attempts):
                    continue
                own = [fill(args, sample, attempt) for sample, attempt in zip(group, played.attempts)]
                if keep is None or call_dynamic_filter(keep, args, own).keep:
                    taken.append(own)
    return RolloutFnTrainOutput(samples=taken)

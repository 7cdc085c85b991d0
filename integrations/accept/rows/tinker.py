"""tinker with its cookbook: the advantages and data that the cookbook makes of an attempt, against those of the export."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/pkgs/tinker-cookbook")
import tinker
import torch
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.data_processing import assemble_training_data, compute_advantages
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition


def trajectory_of(a):
    """A row's calls one after the other: the cookbook cuts rows that are interleaved."""
    steps = [Transition(ob=tinker.ModelInput.from_ints(row["tokenIds"][:turn["start"]]), reward=0.0, episode_done=False,
                        ac=TokensWithLogprobs(tokens=row["tokenIds"][turn["start"]:turn["end"]],
                                              maybe_logprobs=row["logprobs"][turn["start"]:turn["end"]]))
             for row in a.rows for turn in row["turns"]]
    return Trajectory(transitions=steps, final_ob=tinker.ModelInput.empty())


def datum_of(record):
    """As docs/trainers.md makes it, and with the mask."""
    chunks = [tinker.EncodedTextChunk(**chunk) for chunk in record["model_input"]["chunks"]]
    inputs = {name: tinker.TensorData(**value) for name, value in record["loss_fn_inputs"].items()}
    return tinker.Datum(model_input=tinker.ModelInput(chunks=chunks), loss_fn_inputs=inputs)


run = opened()
groups = [TrajectoryGroup([trajectory_of(a) for a in group], [a.reward for a in group], [{} for _ in group]) for group in run.groups]
theirs, _ = assemble_training_data(groups, compute_advantages(groups))
ours = [datum_of(record) for record in native(sys.argv[2])]
assert len(ours) == len(theirs) == len(run.pairs)
for data in (theirs, ours):
    masks = [torch.tensor(datum.loss_fn_inputs["mask"].data) for datum in data]
    advantages = trained([torch.tensor(datum.loss_fn_inputs["advantages"].data) for datum in data], masks)
    run.check_advantages([own[0] for own in advantages], "mean")
    # The service's losses sum over tokens.
    run.check_weights(trained(masks, masks), "token")
for mine, other in zip(ours, theirs):
    same(mine.model_input.to_ints(), other.model_input.to_ints(), "model_input")
    for name, values in other.loss_fn_inputs.items():
        close(mine.loss_fn_inputs[name].data, values.data, name)
run.done("tinker", "export by token, the same data as the cookbook's")

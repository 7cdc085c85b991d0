"""ART: a trajectory an attempt, its rows as histories; the advantages of its tokenizing, its packing and its loss."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/pkgs/openpipe-art")
import types

import torch
from art.loss import LossInputs, loss_fn
from art.preprocessing.pack import packed_tensors_from_tokenized_results
from art.preprocessing.tokenize import tokenize_trajectory_groups
from art.trajectories import LegacyHistory, Trajectory, TrajectoryGroup
from openai.types.chat.chat_completion import Choice
from turnwright.trainers.art import to_trajectory

tokenizer = types.SimpleNamespace(name_or_path="none", decode=str)


def history_of(entries):
    return [Choice.model_validate(entry) if "finish_reason" in entry else entry for entry in entries]


def trajectory_of(record):
    more = [LegacyHistory(messages_and_choices=history_of(own["messages_and_choices"])) for own in record["additional_histories"]]
    about = {name: value for name, value in record.items() if name.endswith("_policy_version")}
    return Trajectory(messages_and_choices=history_of(record["messages_and_choices"]), additional_histories=more,
                      reward=record["reward"], metadata=record["metadata"], **about)


def weights_of(results):
    packed = packed_tensors_from_tokenized_results(results, run.longest, pad_token_id=0, truncate_long_results=False, pack_results=False,
                                                   min_prefix_tree_shared_segment_length=0, verbosity=0)
    mask = packed["assistant_mask"]
    packed["advantages"], packed["logprobs"] = torch.where(mask, 1.0, 0.0), torch.zeros(mask.shape)
    leaf = torch.zeros(mask.shape, requires_grad=True)
    loss = loss_fn(LossInputs.model_construct(inputs=packed), leaf, None, None, {"ppo": True}, "sum").policy_loss
    # Packing orders rows anew, and a token's logprob stands one place before it.
    found = {tuple(ids[own].tolist()): grad[torch.nn.functional.pad(own[1:], (0, 1))].tolist()
             for ids, own, grad in zip(packed["tokens"], mask, gradients(loss, leaf))}
    return [found[tuple(i for i, bit in zip(r.token_ids, r.assistant_mask) if bit)] for r in results]


def check(trajectories):
    groups = [TrajectoryGroup([trajectories[a.place] for a in group]) for group in run.groups]
    results = list(tokenize_trajectory_groups(tokenizer, groups, False, True, shuffle_group_trajectories=False))
    for (_, row), result in zip(run.pairs, results):
        ids, mask, _, _ = tail(row)
        same(result.token_ids, ids, "token_ids")
        same(map(int, result.assistant_mask), mask, "assistant_mask")
    run.check_advantages([result.advantage for result in results], "population std")
    run.check_weights(weights_of(results), "attempt")


run = opened()
records = native(sys.argv[2])
assert [record["metadata"]["rollout"] for record in records] == [a.id for a in run.attempts]
check([trajectory_of(record) for record in records])
check([to_trajectory(a.handed_over()) for a in run.attempts])
run.done("art", "export and live by attempt")

"""OpenRLHF: one row of each attempt. Its experiences, groups and loss, and the tokens that stay out."""
from several_rows import *

import itertools
import types
from typing import *

import torch

S, P = types.SimpleNamespace, f"{ROOT}/pkgs/openrlhf/openrlhf"
process = load_defs(f"{P}/trainer/ppo_utils/samples_generator.py", ["SamplesGenerator._process_response_into_experience"],
                    {"torch": torch, "Experience": S})["_process_response_into_experience"]
util = load_defs(f"{P}/models/utils.py", ["masked_mean", "compute_reward"], {"torch": torch, "Optional": Optional, "Union": Union, "Tuple": Tuple})
maker = load_defs(f"{P}/trainer/ppo_utils/experience_maker.py",
                  ["RemoteExperienceMaker.compute_advantages_and_returns", "RemoteExperienceMaker.get_cumulative_returns"],
                  {"torch": torch, "itertools": itertools, "apply_length_penalties": lambda e, a: None, "logger": None, "Tuple": Tuple, "List": List, **util})
losses = load_defs(f"{P}/models/loss.py", ["aggregate_loss", "PolicyLoss"], {"torch": torch, "nn": torch.nn, **util, "Optional": Optional, "Tuple": Tuple})


def advantages_of(answers, estimator):
    made = [process(None, answer, max_len=1 << 20) for answer in answers]
    for place, one in enumerate(made):
        one.index, one.kl = [place], torch.zeros_like(one.action_mask, dtype=torch.float32)
    how = S(rollout=S(n_samples_per_prompt=len(run.groups[0])), reward=S(clip_range=None),
            algo=S(advantage=S(estimator=estimator, gamma=1.0, no_std_norm=True)))
    me = S(strategy=S(args=how), kl_ctl=S(value=0.0), advantage_estimator=estimator)
    me.get_cumulative_returns = lambda *a: maker["get_cumulative_returns"](me, *a)
    done = maker["compute_advantages_and_returns"](me, made)
    return [float(one.advantages[0][one.action_mask[0].bool()][0]) for one in done]


def check(answers):
    made, pairs = [process(None, answer, max_len=1 << 20) for answer in answers], []
    for a, one in zip(run.attempts, made):
        ids = one.sequences[0].tolist()
        pairs.append((a, next(row for row in a.rows if tail(row)[0] == ids)))
        assert sum(pairs[-1][1]["lossMask"]) == max(sum(row["lossMask"]) for row in a.rows), "the longest row"
    for estimator, kind in (("group_norm", "std"), ("dr_grpo", "mean"), ("rloo", "others")):
        run.check_advantages(advantages_of(answers, estimator), kind, pairs)
    mask = padded([one.action_mask[0].tolist() for one in made])
    old, leaf = torch.zeros_like(mask), torch.zeros_like(mask, requires_grad=True)
    loss = losses["PolicyLoss"](is_correction_level="token", is_correction_mode="clip")(leaf, old, torch.ones_like(mask), mask, old)
    run.check_weights(trained(gradients(loss[0], leaf), mask), "token", pairs)
    return pairs


run = opened()
pairs = check(native(sys.argv[2]))
sys.modules["openrlhf"], sys.modules["openrlhf.utils"] = types.ModuleType("openrlhf"), types.ModuleType("openrlhf.utils")
sys.modules["openrlhf.utils.agent"] = S(AgentExecutorBase=object)
from turnwright.trainers.openrlhf import to_answer

live = [{"prompt": a.group, "label": "0", "images": None, "mm_train_inputs": None, **to_answer(a.handed_over())} for a in run.attempts]
check(live)
left = sum(one["extra_logs"]["tokens_left_out"] for one in live)
assert left == sum(a.tokens for a in run.attempts) - sum(sum(row["lossMask"]) for _, row in pairs)
run.done("openrlhf", "one row an attempt, export and live by token", run.left_out(pairs))

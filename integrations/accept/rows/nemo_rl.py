"""NeMo-RL: one row of each attempt. Its groups, advantages and loss over the results, and the tokens that stay out."""
from several_rows import *

import ast
import types
from collections import Counter
from copy import deepcopy
from typing import *

import torch

S, R = types.SimpleNamespace, f"{ROOT}/src/RL/nemo_rl"
util = load_defs(f"{R}/algorithms/utils.py", ["calculate_baseline_and_std_per_prompt", "masked_mean", "get_gdpo_reward_component_keys"],
                 {"torch": torch, "Optional": Optional})
Estimator = load_defs(f"{R}/algorithms/advantage_estimator.py", ["GRPOAdvantageEstimator"], {"torch": torch, **util})["GRPOAdvantageEstimator"]
GYM, IMAGES = f"{R}/environments/nemo_gym.py", f"{R}/data/multimodal_utils.py"
gym = {"torch": torch, "deepcopy": deepcopy, "Any": Any, "Dict": Dict, "List": List, "Mapping": dict, "math": __import__("math"), "Counter": Counter}
for path in (IMAGES, GYM):
    nodes = ast.parse(open(path).read()).body
    methods = ["NemoGym._postprocess_nemo_gym_to_nemo_rl_result"] if path == GYM else []
    load_defs(path, [node.name for node in nodes if isinstance(node, ast.FunctionDef)] + methods, gym)
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and path == GYM:
            try:
                exec(compile(ast.Module([node], []), path, "exec"), gym)
            except NameError:
                pass
me, tokenizer = S(cfg={}, _processor=None), S(batch_decode=lambda texts: ["" for _ in texts], decode=lambda ids: "")


def message_log(record):
    asked = {"responses_create_params": record["responses_create_params"]}
    return gym["_postprocess_nemo_gym_to_nemo_rl_result"](me, asked, record, tokenizer)["message_log"]


def advantages_of(logs, rewards, leave_one_out):
    """Groups are the ids of the first prompt."""
    prompts = padded([log[0]["token_ids"].tolist() for log in logs], 0)
    estimator = Estimator(S(use_leave_one_out_baseline=leave_one_out, normalize_rewards=False), None)
    return estimator.compute_advantage(prompts, torch.tensor(rewards), torch.ones(len(logs), 1))[:, 0].tolist()


run = opened()
records = native(sys.argv[2])
assert [record["response"]["id"] for record in records] == [a.id for a in run.attempts], "a result an attempt"
logs, pairs = [message_log(record) for record in records], []
for a, log in zip(run.attempts, logs):
    ids = torch.cat([message["token_ids"] for message in log]).tolist()
    pairs.append((a, next(row for row in a.rows if tail(row)[0] == ids)))
for leave_one_out, kind in ((False, "mean"), (True, "others")):
    run.check_advantages(advantages_of(logs, [record["reward"] for record in records], leave_one_out), kind, pairs)
mask = padded([response(row)[2] for _, row in pairs])
leaf = torch.zeros_like(mask, requires_grad=True)
loss = util["masked_mean"](leaf, mask, global_normalization_factor=mask.sum())
run.check_weights(trained(gradients(loss, leaf), mask), "token", pairs)
by_sequence = util["masked_mean"](util["masked_mean"](leaf, mask, dim=-1), torch.ones(len(mask)), global_normalization_factor=len(mask))
run.check_weights(trained(gradients(by_sequence, leaf), mask), "attempt", pairs)
run.done("nemo-rl", "one row an attempt: by token, or by attempt at sequence level", run.left_out(pairs))

"""AReaL: the batches of a workflow that plays whole groups, the actor's advantages without norms, and its loss."""
from several_rows import *

import types
from typing import *

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

S, A = types.SimpleNamespace, f"{ROOT}/pkgs/areal/areal"
for name in ("areal", "areal.api", "areal.utils"):
    # The package's own `__init__` imports its engines.
    sys.modules[name] = types.ModuleType(name)
sys.modules["areal"].workflow_context = sys.modules["areal.utils"].stats_tracker = None
sys.modules["areal.api.workflow_api"] = S(RolloutWorkflow=object)
from turnwright.trainers.areal_group import to_batch


def functions(path):
    """Returns all functions of a file that need none of its imports."""
    import ast

    given = {"torch": torch, "F": F, "np": np, "dist": dist, "Any": Any}
    for node in ast.parse(open(path).read()).body:
        if isinstance(node, ast.FunctionDef):
            try:
                load_defs(path, [node.name], given)
            except NameError:
                pass
    return given


concat = functions(f"{A}/utils/data.py")["concat_padded_tensors"]
loss_of = functions(f"{A}/utils/functional/functional.py")["ppo_actor_loss_fn"]
compute = load_defs(f"{A}/trainer/ppo/actor.py", ["PPOActor._compute_advantages"], {"torch": torch})["_compute_advantages"]
actor = S(config=S(overlong_reward_penalty=False, use_decoupled_loss=False, recompute_logprob=False), reward_bias=0.0,
          reward_scaling=1.0, reward_clip=20.0, reward_norm=None, kl_ctl=0.0, kl_estimator=lambda a, b: a * 0,
          mask_no_eos_with_zero=False, discount=1.0, gae_lambda=1.0, adv_norm=None)


def check(batch, run):
    for (_, row), ids in zip(run.pairs, batch["input_ids"]):
        same(ids.tolist()[:len(tail(row)[0])], tail(row)[0], "input_ids")
    out = compute(actor, batch)
    mask = out["loss_mask"].bool()
    run.check_advantages([own[0] for own in trained(out["advantages"], mask)], "std")
    leaf = out["logprobs"].clone().requires_grad_()
    loss, _ = loss_of(logprobs=leaf, proximal_logprobs=out["prox_logp"], old_logprobs=out["logprobs"],
                      advantages=torch.ones_like(out["advantages"]), eps_clip=0.2, loss_mask=mask)
    run.check_weights(trained(gradients(loss, leaf), mask), "token")


run = opened()
check(concat([to_batch([a.handed_over() for a in group]) for group in run.groups]), run)
# A record of the export is a row with its reward. The group's workflow puts advantages in the place of rewards.
records, right = native(sys.argv[2]), run.advantages("std")
kinds = {"input_ids": torch.int32, "loss_mask": torch.int32, "logprobs": torch.float32, "versions": torch.int32}
rows = [{**{name: torch.tensor([record[name]], dtype=kind) for name, kind in kinds.items()},
         "attention_mask": torch.ones(1, len(record["input_ids"]), dtype=torch.bool),
         "rewards": torch.tensor([right[a.id]])} for (a, _), record in zip(run.pairs, records)]
assert len(records) == len(run.pairs) and [record["rewards"] for record in records] == [a.reward for a, _ in run.pairs]
check(concat(rows), run)
run.done("areal", "live and the rows of the export by token, with advantages in the place of rewards")

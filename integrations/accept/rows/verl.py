"""verl, V1 trainer: what its agent-loop worker stores of a list of outputs, GRPO over sessions, and the actor's loss."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/pkgs/verl")
import asyncio
import types

import numpy as np
import torch
from turnwright.trainers.verl_rows import to_output
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.protocol import DataProto
from verl.trainer.ppo import core_algos

S, P = types.SimpleNamespace, f"{ROOT}/pkgs/verl/verl"
E = core_algos.AdvantageEstimator
by_row = load_defs(f"{P}/trainer/ppo/ray_trainer.py", ["compute_advantage"], {"core_algos": core_algos, "AdvantageEstimator": E, "torch": torch})
by_session = load_defs(f"{P}/trainer/ppo/v1/utils.py", ["compute_advantage_for_multi_trajectories"],
                       {"core_algos": core_algos, "torch": torch, **by_row})["compute_advantage_for_multi_trajectories"]
score = load_defs(f"{P}/experimental/agent_loop/agent_loop.py", ["AgentLoopWorker._compute_score"], {})["_compute_score"]
stored = {}


async def store(keys, fields, tags, partition_id):
    stored.update(zip(keys, fields))


async def no_teacher(*_, **__):
    pass


store_outputs = load_defs(f"{P}/trainer/ppo/v1/agent_loop_tq.py", ["AgentLoopWorkerTQ._agent_loop_postprocess"],
                          {"torch": torch, "logger": None, "list_of_dict_to_tensordict": lambda fields: fields,
                           "tq": S(async_kv_batch_put=store)})["_agent_loop_postprocess"]
worker = S(reward_loop_worker_handles=None, _compute_teacher_logprobs=no_teacher, _compute_multi_modal_inputs=lambda o, i: {},
           _compute_position_ids=lambda i, m, mm: torch.arange(i.shape[-1]).unsqueeze(0))
worker._compute_score = lambda outputs, kwargs: score(worker, outputs, kwargs)


class Config(S):
    def get(self, name, default=None):
        return getattr(self, name, default)


def weights_of(mask):
    """In one mini-batch, so that all rows of a step are in one update."""
    leaf = torch.zeros_like(mask, requires_grad=True)
    about = dict(dp_size=1, batch_num_tokens=int(mask.sum()), global_batch_size=len(mask), loss_scale_factor=None)
    config = Config(clip_ratio=0.2, clip_ratio_low=None, clip_ratio_high=None, global_batch_info=about)
    loss, _ = core_algos.compute_policy_loss_vanilla(torch.zeros_like(mask), leaf, torch.ones_like(mask), mask, "token-mean", config)
    return trained(gradients(loss, leaf), mask)


def check(run, outputs):
    """`outputs` are what each attempt's `run()` returned: an output, or a list of them."""
    stored.clear()
    for a, own in zip(run.attempts, outputs):
        asyncio.run(store_outputs(worker, own if isinstance(own, list) else [own], False, uid=a.group, session_id=a.place, global_steps=3))
    keys, rows = list(stored), list(stored.values())
    for (_, row), fields in zip(run.pairs, rows):
        same(fields["prompts"].tolist() + fields["responses"].tolist(), tail(row)[0], "ids")
    mask, rewards = (padded([row[name].tolist() for row in rows]) for name in ("response_mask", "rm_scores"))
    data = DataProto.from_single_dict({"response_mask": mask, "token_level_rewards": rewards})
    data.non_tensor_batch["uid"] = np.array([row["uid"] for row in rows], dtype=object)
    out = by_session(data, keys, E.GRPO, norm_adv_by_std_in_grpo=True, config={})
    run.check_advantages([own[0] for own in trained(out.batch["advantages"], mask)], "std")
    run.check_weights(weights_of(mask), "token")


run = opened()
records = native(sys.argv[2])
check(run, [[AgentLoopOutput(**one) for one in record.get("outputs", [record])] for record in records])
check(run, [to_output(a.handed_over(), 1 << 20) for a in run.attempts])
run.done("verl", "export and live by token in one mini-batch")

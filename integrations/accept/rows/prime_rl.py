"""prime-rl with the verifiers that it pins: a trace an attempt, a branch a row; its GRPO, its samples and its loss."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/src/verifiers")
import asyncio
import types
from dataclasses import dataclass
from typing import Any
from unittest.mock import MagicMock

# The client of a cloud runtime, which is not used here.
for name in ("prime_sandboxes", "prime_sandboxes.models", "prime_tunnel"):
    sys.modules.setdefault(name, MagicMock())
import msgspec
import torch
import verifiers.v1 as vf
from turnwright.trainers.verifiers import to_nodes
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import Branch

S, R = types.SimpleNamespace, f"{ROOT}/src/prime-rl/src/prime_rl"
Sample = load_defs(f"{R}/transports/rollouts/types.py", ["EncodedTensor", "RoutedExperts", "TrainingSample"],
                   {"msgspec": msgspec}, future=False)["TrainingSample"]
to_samples = load_defs(f"{R}/orchestrator/trajectories.py", ["iter_trainable_branches", "_loss_weights", "trace_to_samples"],
                       {"vf": vf, "TrainingSample": Sample, "_encode_routed_experts": lambda x, n: None,
                        "get_logger": lambda: S(warning=print)})["trace_to_samples"]
score = load_defs(f"{R}/orchestrator/algo/grpo.py", ["GRPOAlgorithm.score_group"], {
    "torch": torch, **load_defs(f"{R}/orchestrator/algo/routing.py", ["assign_advantages"], {"vf": vf}),
    **load_defs(f"{R}/orchestrator/algo/base.py", ["iter_trainable_traces"], {"vf": vf})})["score_group"]


@dataclass
class LossInputs:
    trainer_logprobs: Any
    inference_logprobs: Any
    ref_logprobs: Any
    advantages: Any
    loss_mask: Any
    loss_weights: Any = None


losses = load_defs(f"{R}/trainer/rl/loss.py", ["_safe_mean", "compute_importance_ratio_and_mismatch_kl", "default_loss_fn", "compute_loss"],
                   {"torch": torch, "Any": Any, "LossInputs": LossInputs, "LossOutputs": lambda loss, metrics: S(loss=loss, metrics=metrics)})


def trace_of(record, weight):
    """Returns the trace of an exported record. `weight` of each sampled token is prime-rl's `loss_weights`."""
    nodes = [MessageNode.model_validate({**n, "loss_weights": {"rl": [weight * bit for bit in n["mask"]]} if weight else None})
             for n in record["nodes"]]
    roots = [place for place, node in enumerate(nodes) if node.parent is None] + [len(nodes)]
    branches = [Branch(index=i, nodes=nodes[first:end]) for i, (first, end) in enumerate(zip(roots, roots[1:]))]
    return S(id=record["id"], reward=record["reward"], branches=branches, nodes=nodes, has_error=False, agent=S(trainable=True),
             stop_condition=None, num_turns=1)


def weights_of(samples):
    leaves = [torch.tensor(s.logprobs).requires_grad_() for s in samples]
    masks = [torch.tensor(s.mask) for s in samples]
    loss, _ = losses["compute_loss"](
        trainer_logprobs=leaves, inference_logprobs=[x.detach() for x in leaves], ref_logprobs=None,
        advantages=[torch.ones_like(x) for x in leaves], loss_mask=masks, ce_weights=None, ref_kl_weights=None,
        rl_weights=[torch.tensor(s.rl_weights) for s in samples] if samples[0].rl_weights else None,
        rl_loss_fn=lambda inputs: losses["default_loss_fn"](inputs, S(dppo_mask_low=0.2, dppo_mask_high=0.2, adv_tau=1.0, kl_tau=0.0)),
        rl_scale=sum(int(m.sum()) for m in masks), ce_scale=1, ref_kl_scale=1)
    return trained([g.abs() for g in torch.autograd.grad(loss, leaves)], masks)


run = opened()
# The export for prime-rl has samples that carry their advantages.
samples = [Sample(**record["sample"]) for record in native(sys.argv[2])]
for (_, row), s in zip(run.pairs, samples):
    same(s.token_ids, tail(row)[0], "token_ids")
firsts = [next(x for x, bit in zip(s.advantages, s.mask) if bit) for s in samples]
run.check_advantages(firsts, "mean")
run.check_weights(weights_of(samples), "token")
# Its orchestrator takes traces, which are the export for verifiers, and sets advantages itself.
exported = {record["id"]: record for record in native(os.environ["VERIFIERS_EXPORT"])}
live = {a.id: {"id": a.id, "reward": a.reward, "nodes": [node.model_dump() for node in to_nodes(a.handed_over())]} for a in run.attempts}
for records in (exported, live):
    for weigh, law in ((lambda a: None, "token"), (lambda a: 8 / a.tokens, "attempt")):
        samples = []
        for group in run.groups:
            traces = [trace_of(records[a.id], weigh(a)) for a in group]
            asyncio.run(score(S(length_penalty=None), [S(traces=[trace]) for trace in traces]))
            samples += [s for trace in traces for s in to_samples(trace)]
        run.check_advantages([next(x for x, bit in zip(s.advantages, s.mask) if bit) for s in samples], "mean")
        run.check_weights(weights_of(samples), law)
run.done("prime-rl", "samples, and traces of export and shim, by token", "by attempt with loss_weights")

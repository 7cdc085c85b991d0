"""tinker: a datum with the teacher in its advantages, as the cookbook's distillation makes it, and one with the most probable ids as targets."""
from column_rows import *

import asyncio
import types

import tinker
import torch

COOKBOOK = f"{ROOT}/pkgs/tinker-cookbook/tinker_cookbook/distillation"
names = {"torch": torch, "tinker": tinker, "asyncio": asyncio, "cast": lambda _, value: value,
         "safezip": lambda *lists: list(zip(*lists, strict=True)), "discounted_future_sum_vectorized": None}
penalise = load_defs(f"{COOKBOOK}/train_on_policy.py", ["incorporate_kl_penalty"], names)["incorporate_kl_penalty"]


def datum(record):
    (chunk,) = record["model_input"]["chunks"]
    inputs = {name: tinker.TensorData(**value) for name, value in record["loss_fn_inputs"].items()}
    return tinker.Datum(model_input=tinker.ModelInput(chunks=[tinker.EncodedTextChunk(**chunk)]), loss_fn_inputs=inputs)


class Teacher:
    """Answers as tinker's sampling client does for a teacher."""

    def compute_logprobs(self, sequence):
        ids = sequence.to_ints()

        async def answer():
            return [None] + [teacher_logprob(ids, token) for token in range(1, len(ids))]
        return types.SimpleNamespace(coroutine=answer)


plain, folded = [datum(record) for record in Run(()).exported()], [datum(record) for record in taught()]
asyncio.run(penalise(plain, [Teacher()] * len(plain), [0] * len(plain), 1.0, 0.0))
for own, ours in zip(plain, folded, strict=True):
    want, got = (one.loss_fn_inputs["advantages"].to_torch() for one in (own, ours))
    assert torch.allclose(want, got, atol=1e-6), f"advantages: {(want - got).abs().max()}"
for record, ours in zip(taught_top(), folded, strict=True):
    targets, weights = (tinker.TensorData.from_numpy(record["cross_entropy_inputs"][name]) for name in ("target_tokens", "weights"))
    assert (targets.dtype, weights.dtype) == ("int64", "float32")
    made = tinker.Datum(model_input=ours.model_input, loss_fn_inputs={"target_tokens": targets, "weights": weights})
    ids = ours.model_input.to_ints() + [int(ours.loss_fn_inputs["target_tokens"].data[-1])]
    back, shares = (made.loss_fn_inputs[name].to_torch() for name in ("target_tokens", "weights"))
    for at, bit in enumerate(ours.loss_fn_inputs["mask"].data):
        top, logprobs = teacher_top(ids, at + 1, back.shape[1])
        want = torch.tensor(logprobs).softmax(0) if bit else torch.zeros(len(top))
        assert torch.allclose(shares[at], want, atol=1e-6) and (not bit or back[at].tolist() == top)
print(f"tinker: {len(folded)} datums distilled: accepted")

"""prime-rl: a sample over its wire, its preparation, padding and cutting, and the tensor that the trainer replays."""
from column_rows import *

import types

import msgspec

SOURCE = f"{ROOT}/src/prime-rl/src/prime_rl"
run = Run(("routedExperts",))
transport = types.ModuleType("transport")
exec(compile(open(f"{SOURCE}/transports/rollouts/types.py").read(), "types.py", "exec"), vars(transport))
batch = load_defs(f"{SOURCE}/trainer/batch.py", ["_copy_routed_experts", "_routed_experts_row_size", "_slice_routed_experts", "_pad_routed_experts",
                                                 "multimodal_sample_error", "prepare_sample"], {"np": np, **vars(transport)})
Sample, Routes = transport.TrainingSample, transport.RoutedExperts
names = {"torch": None}
try:
    import torch

    torch_type = load_defs(f"{SOURCE}/trainer/rl/data.py", ["_torch_dtype"], {"torch": torch})["_torch_dtype"]
except ImportError:
    torch = None


def tensor(routes):
    """Reads routes as the trainer's loader does."""
    if torch is None:
        return np.frombuffer(routes.data, routes.dtype).reshape(routes.shape)
    return torch.frombuffer(bytearray(routes.data), dtype=torch_type(routes.dtype)).reshape(routes.shape).to(torch.int32)


def to_sample(record):
    own = dict(record["sample"])
    routes = own["routed_experts"]
    own["routed_experts"] = Routes(data=routes.tobytes(), shape=list(routes.shape), dtype=str(routes.dtype))
    made = Sample(**own)
    return msgspec.msgpack.Decoder(Sample).decode(msgspec.msgpack.Encoder().encode(made))


seen, kinds, samples = {}, set(), []
for record in run.exported():
    name, sample = record["id"], to_sample(record)
    index = seen[name] = seen.get(name, -1) + 1
    ids = sample.token_ids
    kinds.add(sample.routed_experts.dtype)
    prepared = batch["prepare_sample"](sample, len(ids) + 5)
    run.routes(tensor(prepared.routed_experts), name, index, ids, "export")
    assert not np.asarray(tensor(prepared.routed_experts))[len(ids) - 1].any()
    batch["_pad_routed_experts"](prepared, 3)
    assert prepared.routed_experts.shape[0] == len(ids) + 3
    cut = batch["prepare_sample"](sample, len(ids) - 1)
    run.routes(tensor(cut.routed_experts), name, index, cut.input_ids, "export, cut")
    samples.append(sample)


def short():
    routes = samples[0].routed_experts
    size = len(routes.data) // routes.shape[0]
    routes.shape, routes.data = [routes.shape[0] - 1, *routes.shape[1:]], routes.data[:-size]
    batch["prepare_sample"](samples[0], 1000)


refused("a row too few", short)
names = {"torch": torch, "_safe_mean": lambda *_: None, "LossOutputs": lambda loss, metrics: loss}
losses = torch and load_defs(f"{SOURCE}/trainer/rl/loss.py", ["compute_importance_ratio_and_mismatch_kl", "ref_kl_loss_fn"], names)
distilled = 0
for record in taught():
    own = {**record["sample"]}
    routes = own["routed_experts"]
    sample = Sample(**{**own, "routed_experts": Routes(data=routes.tobytes(), shape=list(routes.shape), dtype=str(routes.dtype))})
    prepared = batch["prepare_sample"](msgspec.msgpack.Decoder(Sample).decode(msgspec.msgpack.Encoder().encode(sample)), 1000)
    ids, mask = prepared.input_ids, own["mask"]
    want = [teacher_logprob(ids, token) if bit else 0.0 for token, bit in enumerate(mask)]
    assert (prepared.ref_logprobs, prepared.ref_kl_weights) == (want, [float(bit) for bit in mask]), record["id"]
    assert not any(prepared.rl_weights), record["id"]
    distilled += 1
    if torch is None:
        continue
    policy = torch.tensor(own["logprobs"], requires_grad=True)
    weights = torch.tensor(prepared.ref_kl_weights)
    inputs = types.SimpleNamespace(trainer_logprobs=policy, inference_logprobs=policy.detach(), ref_logprobs=torch.tensor(prepared.ref_logprobs),
                                   loss_mask=weights != 0, loss_weights=weights)
    losses["ref_kl_loss_fn"](inputs).backward()
    assert policy.grad.tolist() == [logprob - other if bit else 0.0 for logprob, other, bit in zip(own["logprobs"], want, mask)]
run.done("prime-rl", f" as {', '.join(kinds)}, {distilled} rows distilled")

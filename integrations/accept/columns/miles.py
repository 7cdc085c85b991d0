"""miles: `Sample.validate()`, its codec of samples, its replay of top-k, and the top logprobs of its distillation."""
from column_rows import *

import sys
import types

MILES = f"{ROOT}/src/miles"
sys.path.insert(0, MILES)
for name in ("miles", "miles.utils", "miles.rollout", "miles.rollout.session", "miles.rollout.session.samples"):
    stand_in(name, f"{MILES}/{name.replace('.', '/')}")
stand_in("miles.utils.lora", LORA_ADAPTER_NAME=None, lora_rollout_enabled=None)
stand_in("miles.utils.lifecycle", attach_lifecycle_metadata=lambda *_, **__: None)
import torch
from miles.rollout.session.samples.codec import decode_samples_and_merge_input_sample, encode_samples
from miles.utils.types import Sample
from turnwright.trainers.slime_sample import fill

run = Run(("routedExperts", "topLogprobs", "indexerTopK"))
replay = load_defs(f"{MILES}/miles/utils/replay_base.py", ["Replay", "BaseReplayManager"], {"torch": torch, "logger": None, "os": __import__("os")})
tops = load_defs(f"{MILES}/miles/rollout/on_policy_distillation.py", ["_student_top_logprobs"], {"Sample": Sample, "TopLogprobs": list, "Any": object})


def replayed(routes):
    """Returns the experts that miles' replay chooses in place of a router's, layer after layer."""
    chosen = []
    for layer in range(routes.shape[1]):
        manager, one = replay["BaseReplayManager"](), replay["Replay"]()
        manager.enabled, manager.enable_check_replay_result, manager.stage = True, False, "replay_forward"
        own = torch.as_tensor(routes[:, layer].astype(np.int64))
        one.pop_forward = lambda own=own: own
        manager.set_current(one)
        choose = manager.get_topk_fn(lambda scores, count: torch.topk(scores, count), True)
        chosen.append(choose(torch.rand(len(own), run.shape["expertCount"]), routes.shape[2])[1])
    return torch.stack(chosen, 1)


def check(sample, what):
    sample.validate()
    name, index = sample.metadata["rollout"], (sample.metadata.get("lineage") or {}).get("row", 0)
    (back,) = decode_samples_and_merge_input_sample(encode_samples([sample], {}), Sample()).samples
    assert back.rollout_routed_experts.dtype == back.rollout_indexer_topk.dtype == np.int32
    run.routes(back.rollout_routed_experts, name, index, sample.tokens, what)
    dense, routes = replayed(back.rollout_routed_experts), back.rollout_routed_experts
    run.routes(dense, name, index, sample.tokens, f"{what}, replayed")
    truth = run.rows[name][index][1]
    assert back.rollout_indexer_topk.tolist() == truth["indexerTopK"][:len(sample.tokens) - 1], f"{what} of {name}: positions"
    start = len(sample.tokens) - sample.response_length
    want = [[[logprob, token, None] for logprob, token in own] for own in truth["topLogprobs"][start:len(sample.tokens)]]
    assert tops["_student_top_logprobs"](sample, sample.response_length) == want, f"{what} of {name}: top logprobs"
    return routes


loaded = []
for record in run.exported():
    sample = Sample.from_dict(record)
    check(sample, "export")
    loaded.append(sample)
_, groups = run.scored()
for number, group in enumerate(groups):
    for place, name in enumerate(group):
        for sample in fill(Sample(group_index=number, index=2 * number + place, metadata={}), run.attempt(name), "miles", []):
            check(sample, "live")
first = loaded[0]
wide = np.concatenate([first.rollout_routed_experts] * 2)


def wrong(routes):
    sample = Sample(**{**vars(first), "rollout_routed_experts": routes})
    sample.validate()
    encode_samples([sample], {})


refused("rows twice", lambda: wrong(wide))
refused("bytes", lambda: wrong(first.rollout_routed_experts.astype(np.uint8)))
opd = load_defs(f"{MILES}/miles/backends/training_utils/loss_hub/opd.py", ["apply_opd_kl_to_advantages"], {"torch": torch})
samples = [Sample.from_dict(record) for record in taught()]
for sample in samples:
    sample.validate()
    assert sample.opd_reverse_kl is None
    policy, advantages = [torch.tensor(sample.rollout_log_probs)], [torch.zeros(sample.response_length)]
    data = {"teacher_log_probs": [torch.as_tensor(sample.teacher_log_probs, dtype=torch.float32)]}
    opd["apply_opd_kl_to_advantages"](types.SimpleNamespace(opd_kl_coef=2.0, opd_type="sglang"), data, advantages, policy)
    start = len(sample.tokens) - sample.response_length
    want = [2 * (teacher_logprob(sample.tokens, start + at) - logprob) for at, logprob in enumerate(sample.rollout_log_probs)]
    assert advantages[0].tolist() == want, f"distillation of {sample.metadata['rollout']}"
short = Sample(**{**vars(samples[0]), "teacher_log_probs": samples[0].teacher_log_probs[1:]})
refused("a logprob of the teacher too few", short.validate)
run.done("miles", f", with positions and top logprobs of {len(loaded)} rows, {len(samples)} rows distilled")

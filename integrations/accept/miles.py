import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0]); from common import *
sys.path = [p for p in sys.path if not p.endswith("accept")]           # this file's own name must not hide the package
sys.path.insert(0, f"{ROOT}/src/miles"); import itertools, logging, torch, types
from typing import Any, Callable
from miles.utils.types import Sample
rows, dicts = native(sys.argv[1]), native(sys.argv[2])
samples = [Sample.from_dict(d) for d in dicts]
assert len(samples) == len(rows), (len(samples), len(rows))
for s, r in zip(samples, rows):
    n = r["promptLength"]
    same(s.tokens, r["tokenIds"], "tokens"); same(s.loss_mask, r["lossMask"][n:], "loss_mask"); close(s.rollout_log_probs, r["logprobs"][n:], "rollout_log_probs")
    assert s.response_length == len(r["tokenIds"]) - n > 0 and s.status == Sample.Status(r["outcome"]) and s.reward == r.get("reward")
R, S = f"{ROOT}/src/miles/miles", types.SimpleNamespace
ids = [s.index if s.rollout_id is None else s.rollout_id for s in samples]
assert len(set(ids)) == len({r["rolloutId"] for r in rows}) and len({(s.group_index, r["groupId"]) for s, r in zip(samples, rows)}) == len({r["groupId"] for r in rows})
own = load_defs(f"{R}/ray/rollout/train_data_conversion.py", ["_compute_rollout_mask_sums", "_reward_group_segments", "_normalize_rewards_by_rollout", "_post_process_rewards"], {"torch": torch, "Any": Any, "Sample": Sample})
whole = S(cp=S(size=1), effective_cp=S(size=1))
reducer_of = load_defs(f"{R}/backends/training_utils/cp_utils.py", ["get_sum_of_sample_mean"], {"torch": torch, "Callable": Callable, "get_parallel_state": lambda: whole})["get_sum_of_sample_mean"]
groups = {}
for s, i in zip(samples, ids): groups.setdefault(s.group_index, set()).add(i)
args = S(reward_key=None, advantage_estimator="grpo", rewards_normalization=True, grpo_std_normalization=True, n_samples_per_prompt=len(next(iter(groups.values()))), rollout_batch_size=len(groups))
_, advantages = own["_post_process_rewards"](args, samples, None)
masks, answers = [torch.tensor(s.loss_mask, dtype=torch.float32) for s in samples], [s.response_length for s in samples]
sums = [torch.tensor(float(x)) for x in own["_compute_rollout_mask_sums"](ids, [s.loss_mask for s in samples])]
new = torch.cat([f32(s.rollout_log_probs) for s in samples]).requires_grad_()
each = torch.cat([torch.full((n,), float(a)) for n, a in zip(answers, advantages)])
loss = reducer_of([len(s.tokens) for s in samples], answers, masks, denominators=sums)(new * each)
done("miles", rows, f"({gradient_only_at(loss, new, torch.cat(masks), each.abs() > 1e-6, 'batch')} positions with gradient)")

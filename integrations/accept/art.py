import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0]); from common import *
sys.path = [p for p in sys.path if not p.endswith("accept")]
sys.path.insert(0, f"{ROOT}/pkgs/openpipe-art")
import types, torch
from art.preprocessing.tokenize import tokenize_trajectory_groups
from art.trajectories import LegacyHistory, Trajectory, TrajectoryGroup
from openai.types.chat.chat_completion import Choice

def history(entries): return [Choice.model_validate(e) if "finish_reason" in e else e for e in entries]

rows, recs = native(sys.argv[1]), native(sys.argv[2])
by_rollout, groups = {}, {}
for r in rows: by_rollout.setdefault(r["rolloutId"], []).append(r)
assert list(by_rollout) == [d["metadata"]["rollout"] for d in recs], "a trajectory an attempt, in their order"
for d in recs:
    mine = by_rollout[d["metadata"]["rollout"]]
    t = Trajectory(messages_and_choices=history(d["messages_and_choices"]), additional_histories=[LegacyHistory(messages_and_choices=history(h["messages_and_choices"])) for h in d["additional_histories"]],
                   **{k: x for k, x in d.items() if k not in ("messages_and_choices", "additional_histories")})
    assert t.reward == mine[0]["reward"] and t.metadata["group"] == mine[0]["groupId"] and t.metadata["outcome"] == mine[0]["outcome"] and len(t.additional_histories) + 1 == len(mine)
    versions = {int(v) for r in mine for v, m in zip(r["policyVersions"], r["lossMask"]) if m}
    assert (t.initial_policy_version, t.final_policy_version) == (min(versions), max(versions))
    groups.setdefault(mine[0]["groupId"], []).append((t, mine))
tokenizer = types.SimpleNamespace(name_or_path="none", decode=str)
count = 0
for members in groups.values():
    rewards = [t.reward for t, _ in members]
    results = list(tokenize_trajectory_groups(tokenizer, [TrajectoryGroup([t for t, _ in members])], False, True, shuffle_group_trajectories=False))
    if len(set(rewards)) == 1: assert results == [], "ART drops groups of one reward"; continue
    mean = sum(rewards) / len(rewards); scale = (sum((x - mean) ** 2 for x in rewards) / len(rewards)) ** 0.5
    for result, (row, reward) in zip(results, [(r, t.reward) for t, mine in members for r in mine], strict=True):
        ids, mask, logprobs, _ = tail(row)
        same(result.token_ids, ids, "token_ids"); same(map(int, result.assistant_mask), mask, "assistant_mask")
        close([x for x, m in zip(result.logprobs, mask) if m], [x for x, m in zip(logprobs, mask) if m], "logprobs")
        assert abs(result.advantage - (reward - mean) / scale) < 1e-4, "advantage"
        count += sum(mask)
done("art", rows, f"({count} tokens in groups with several rewards)")

import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0]); from common import *
sys.path = [p for p in sys.path if not p.endswith("accept")]
sys.path.insert(0, os.environ.get("VERIFIERS", f"{ROOT}/pkgs/verifiers"))  # with src/verifiers, prime-rl's conversion runs too
import types, msgspec
from unittest.mock import MagicMock

# The client of a cloud runtime, which is not used here.
for name in ("prime_sandboxes", "prime_sandboxes.models", "prime_tunnel"):
    sys.modules.setdefault(name, MagicMock())
import verifiers.v1 as vf
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import Branch

convert = None
if hasattr(Branch, "multi_modal_data"):  # prime-rl 559b44772 reads it, and verifiers 0.4.0 has none
    A = f"{ROOT}/src/prime-rl/src/prime_rl"
    T = load_defs(f"{A}/transports/rollouts/types.py", ["EncodedTensor", "RoutedExperts", "TrainingSample"], {"msgspec": msgspec}, future=False)
    convert = load_defs(
        f"{A}/orchestrator/trajectories.py", ["iter_trainable_branches", "_loss_weights", "trace_to_samples"],
        {"vf": vf, "TrainingSample": T["TrainingSample"], "_encode_routed_experts": lambda x, n: None,
         "get_logger": lambda: types.SimpleNamespace(warning=print)},
    )
rows, recs = native(sys.argv[1]), native(sys.argv[2])
by_rollout = {}
for r in rows: by_rollout.setdefault(r["rolloutId"], []).append(r)
assert list(by_rollout) == [d["id"] for d in recs], "a trace an episode, in their order"
for d in recs:
    mine = by_rollout[d["id"]]; r = mine[0]
    nodes = [MessageNode.model_validate(n) for n in d["nodes"]]
    assert all(len(n.logprobs) == sum(n.mask) for n in nodes)
    roots = [i for i, n in enumerate(nodes) if n.parent is None] + [len(nodes)]
    assert [n.parent for n in nodes] == [None if i in roots else i - 1 for i in range(len(nodes))]
    branches = [Branch(index=i, nodes=nodes[a:b]) for i, (a, b) in enumerate(zip(roots, roots[1:]))]
    assert len(branches) == len(mine), "a branch a row"
    for b, row in zip(branches, mine):
        t, m, l, v = tail(row)
        same(b.token_ids, t, "branch.token_ids"); same(map(int, b.sampled_mask), m, "branch.sampled_mask"); close(b.logprobs, l, "branch.logprobs")
    assert d["reward"] == r.get("reward") and d["group"] == r["groupId"] and d["is_truncated"] == (r["outcome"] == "truncated")
    if convert is None: continue
    trace = types.SimpleNamespace(branches=branches, has_error=False, stop_condition=d["stop_condition"], num_turns=len(nodes) // 2)
    samples = convert["trace_to_samples"](trace)
    assert len(samples) == len(mine)
    for s, row in zip(samples, mine):
        t, m, l, v = tail(row)
        same(s.token_ids, t, "token_ids"); same(map(int, s.mask), m, "mask"); assert len(s.logprobs) == len(t); close(s.logprobs, l, "logprobs")
done("verifiers", rows, "also by prime-rl's trace_to_samples" if convert else "as verifiers' Branch only")

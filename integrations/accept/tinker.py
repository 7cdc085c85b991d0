import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0]); from common import *
sys.path = [p for p in sys.path if not p.endswith("accept")]
import tinker

rows, recs = native(sys.argv[1]), native(sys.argv[2]); assert len(rows) == len(recs)
by_group = {}
for r in rows: by_group.setdefault(r["groupId"], {})[r["rolloutId"]] = float(r["reward"])
for r, d in zip(rows, recs):
    (chunk,) = d["model_input"]["chunks"]
    datum = tinker.Datum(model_input=tinker.ModelInput(chunks=[tinker.EncodedTextChunk(**chunk)]),
                         loss_fn_inputs={k: tinker.TensorData(**x) for k, x in d["loss_fn_inputs"].items()})
    t, m, l, v = tail(r); x = {k: a.to_numpy().tolist() for k, a in datum.loss_fn_inputs.items()}
    same(datum.model_input.to_ints(), t[:-1], "model_input"); same(x["target_tokens"], t[1:], "target_tokens")
    same(map(int, x["mask"]), m[1:], "mask"); close(x["logprobs"], l[1:], "logprobs")
    rewards = by_group[r["groupId"]].values(); centred = float(r["reward"]) - sum(rewards) / len(rewards)
    assert all(abs(a - centred * bit) < 1e-6 for a, bit in zip(x["advantages"], m[1:])), "advantages"
    assert all(list(a.shape) == [len(t) - 1] for a in datum.loss_fn_inputs.values())
done("tinker", rows)

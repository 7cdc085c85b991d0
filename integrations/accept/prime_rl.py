import sys; sys.path.insert(0, __file__.rsplit("/", 1)[0]); from common import *
import msgspec

T = load_defs(f"{ROOT}/src/prime-rl/src/prime_rl/transports/rollouts/types.py",
              ["EncodedTensor", "RoutedExperts", "TrainingSample"], {"msgspec": msgspec}, future=False)["TrainingSample"]
rows, recs = native(sys.argv[1]), native(sys.argv[2]); assert len(rows) == len(recs)
by_group = {}
for r in rows: by_group.setdefault(r["groupId"], {})[r["rolloutId"]] = float(r["reward"])
encode, decode = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(T)
for r, d in zip(rows, recs):
    assert set(d["sample"]) <= set(T.__struct_fields__)
    s = decode.decode(encode.encode(T(**d["sample"])))  # the way to the trainer and back
    t, m, l, v = tail(r)
    same(s.token_ids, t, "token_ids"); same(map(int, s.mask), m, "mask"); close(s.logprobs, l, "logprobs")
    assert len(s.temperatures) == len(t) and d["reward"] == r["reward"] and d["group"] == r["groupId"] and d["id"] == r["rolloutId"]
    rewards = by_group[r["groupId"]].values(); centred = float(r["reward"]) - sum(rewards) / len(rewards)
    assert all(abs(a - centred * bit) < 1e-12 for a, bit in zip(s.advantages, m)), "advantages"
done("prime-rl", rows)

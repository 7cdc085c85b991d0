"""read_tables.py ROWS.json FILE.parquet SHARDS: reads the exports back and compares them with the rows."""

import json
import math
import os
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("HF_HOME", tempfile.mkdtemp())
import datasets
import duckdb
import pandas
import pyarrow.parquet
from safetensors.numpy import load_file

rows, file, shards = json.load(open(sys.argv[1])), sys.argv[2], sys.argv[3]
wanted = [
    {
        "rollout_id": r["rolloutId"], "group_id": r["groupId"], "segment": r["segment"], "reward": r.get("reward"),
        "prompt_length": r["promptLength"], "token_ids": r["tokenIds"], "loss_mask": r["lossMask"],
        "logprobs": r["logprobs"], "policy_versions": r["policyVersions"], "outcome": r["outcome"],
    }
    for r in rows
]
names = list(wanted[0])


def compare(found, reader):
    found = [{name: row[name] for name in names} for row in found]
    assert found == wanted, f"{reader} reads other rows"


table = pyarrow.parquet.read_table(file)
assert str(table.schema.field("token_ids").type.value_type) == "int32"
assert str(table.schema.field("loss_mask").type.value_type) == "int8"
assert str(table.schema.field("logprobs").type.value_type) == "double"
compare(table.to_pylist(), "pyarrow")
frame = pandas.read_parquet(file)
compare([
    {**{n: getattr(v, "tolist", lambda v=v: v)() for n, v in row.items()},
     "reward": None if math.isnan(row["reward"]) else row["reward"]}
    for row in frame.to_dict("records")
], "pandas")
found = duckdb.sql(f"select * from read_parquet('{file}')")
compare([dict(zip(found.columns, row)) for row in found.fetchall()], "duckdb")
compare(list(datasets.Dataset.from_parquet(file, cache_dir=tempfile.mkdtemp())), "datasets")
place = 0
for shard in json.load(open(f"{shards}/index.json"))["shards"]:
    t = load_file(f"{shards}/{shard['file']}")
    for i in range(shard["rowCount"]):
        start, end, r = t["row_offsets"][i], t["row_offsets"][i + 1], wanted[place]
        assert t["token_ids"][start:end].tolist() == r["token_ids"], "safetensors: other ids"
        assert t["loss_mask"][start:end].tolist() == r["loss_mask"], "safetensors: another mask"
        assert all(abs(a - b) < 1e-6 for a, b in zip(t["logprobs"][start:end].tolist(), r["logprobs"]))
        assert (math.isnan(t["rewards"][i]) and r["reward"] is None) or t["rewards"][i] == r["reward"]
        place += 1
assert place == len(rows)
print(f"pyarrow, pandas, duckdb, datasets, safetensors: {len(rows)} rows read back the same")

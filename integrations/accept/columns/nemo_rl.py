"""NeMo-RL: its codec of routes, and its reading of a Gym result with router replay."""
from column_rows import *

import ast
import types
from collections import Counter
from copy import deepcopy
from typing import Any, Dict, List, Mapping, Optional, Union

import torch

SOURCE = f"{ROOT}/src/RL/nemo_rl"
GYM = f"{SOURCE}/environments/nemo_gym.py"
run = Run(("routedExperts",))
codec = {"torch": torch, "base64": __import__("base64"), "Any": Any, "Union": Union}
for node in ast.parse(open(f"{SOURCE}/utils/routed_experts_codec.py").read()).body:
    if isinstance(node, (ast.Assign, ast.FunctionDef)):
        exec(compile(ast.Module([node], []), "codec", "exec"), codec)
kind = load_defs(f"{SOURCE}/models/generation/interfaces.py", ["resolve_routed_experts_dtype"],
                 {"torch": torch, "Optional": Optional, "ROUTED_EXPERTS_FALLBACK_DTYPE": torch.int16})["resolve_routed_experts_dtype"]
names = {"torch": torch, "deepcopy": deepcopy, "Any": Any, "Dict": Dict, "List": List, "Mapping": Mapping, "Counter": Counter,
         "math": __import__("math"), "decode_routed_experts": codec["decode_routed_experts"]}
tree = ast.parse(open(GYM).read())
for node in ast.parse(open(f"{SOURCE}/data/multimodal_utils.py").read()).body:
    if isinstance(node, ast.FunctionDef):
        load_defs(f"{SOURCE}/data/multimodal_utils.py", [node.name], names)
owner, reader = next((one.name, node) for one in tree.body if isinstance(one, ast.ClassDef) for node in one.body
                     if isinstance(node, ast.FunctionDef) and "seen_token_ids" in ast.unparse(node))
load_defs(GYM, [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] + [f"{owner}.{reader.name}"], names)
for node in tree.body:
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        try:
            exec(compile(ast.Module([node], []), GYM, "exec"), names)
        except NameError:
            pass
wanted = str(kind(run.shape["expertCount"])).removeprefix("torch.")
gym = types.SimpleNamespace(cfg={"routed_experts_dtype": wanted, "require_routed_experts": True}, _processor=None)
text = types.SimpleNamespace(batch_decode=lambda many: ["" for _ in many], decode=lambda _: "")


def read(record):
    return names[reader.name](gym, {"responses_create_params": {"input": []}}, deepcopy(record), text)["message_log"]


records = run.exported()
for record in records:
    log, name = read(record), record["response"]["id"]
    ids = torch.cat([message["token_ids"] for message in log]).tolist()
    routes = torch.cat([message["routed_experts"] for message in log])
    assert len(routes) == len(ids) and bool((routes[-1] == -1).all()), "the last id's routes are missing"
    index = next(n for n, (row, _) in enumerate(run.rows[name]) if row["tokenIds"][:len(ids)] == ids)
    run.routes(routes, name, index, ids, "export")
    assert record["response"]["output"][0]["routed_experts"].split(":")[1] == wanted


def wrong(change):
    record = deepcopy(records[0])
    for item in record["response"]["output"]:
        change(item)
    read(record)


def short(item):
    routes = codec["decode_routed_experts"](item["routed_experts"], torch.int16)
    item["routed_experts"] = codec["encode_routed_experts"](routes[:-1])


refused("a row too few", lambda: wrong(short))
refused("no routes", lambda: wrong(lambda item: item.pop("routed_experts")))
run.done("nemo-rl", f" as {wanted}")

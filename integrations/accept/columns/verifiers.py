"""verifiers: nodes over its wire, and the routes and sampling masks of their branches."""
from column_rows import *

import sys
import types
from unittest.mock import MagicMock

sys.path.insert(0, f"{ROOT}/pkgs/verifiers")
# The client of a cloud runtime, which is not used here.
for name in ("prime_sandboxes", "prime_sandboxes.models", "prime_tunnel"):
    sys.modules.setdefault(name, MagicMock())
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import Branch
from verifiers.v1.types import SamplingMask
from turnwright.trainers.verifiers import to_nodes

run = Run(("routedExperts", "keptTokens"))


def branches(nodes):
    """Returns the nodes of each branch over the wire: a node without a parent begins one."""
    found = []
    for node in nodes:
        node = MessageNode.model_validate(MessageNode.model_validate(node).model_dump(mode="python"))
        if node.parent is None:
            found.append([])
        found[-1].append(node)
    return found


def check(nodes, name, what):
    for index, own in enumerate(branches(nodes)):
        branch = types.SimpleNamespace(nodes=own)
        routes, masks = Branch.routed_experts.fget(branch), Branch.sampling_mask.fget(branch)
        ids = [token for node in own for token in node.token_ids]
        assert len(routes) == len(ids) and (routes[-1] == routes[-2]).all(), "the last id has a copy"
        run.routes(routes, name, index, ids, what)
        at, sets = 0, run.kept(name, index, 0, len(ids))
        for kept, count in zip(sets, masks.counts.tolist()):
            assert masks.ids[at:at + count].tolist() == kept, f"{what} of {name}: mask"
            at += count
        kinds.add(str(routes.dtype))


def with_mask(node):
    mask = node.get("sampling_mask")
    return node if mask is None else {**node, "sampling_mask": SamplingMask(**mask)}


kinds = set()
for record in run.exported():
    check([with_mask(node) for node in record["nodes"]], record["id"], "export")
found, _ = run.scored()
for name in found:
    check(to_nodes(run.attempt(name)), name, "live")
run.done("verifiers", f" as {', '.join(kinds)}, with masks")

"""verl: `AgentLoopOutput.as_dict()`, which aligns routes with the ids, and the padding of its workers."""
from column_rows import *

import inspect
import sys
import textwrap
import types

sys.path.insert(0, f"{ROOT}/pkgs/verl")
import torch
from verl.experimental.agent_loop import agent_loop
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from turnwright.trainers.verl_rows import to_output

run = Run(("routedExperts",))
source = inspect.getsource(agent_loop)
start = source.index("        routed_experts = None\n        if output.routed_experts is not None:")
padding = textwrap.dedent(source[start:source.index("        multi_modal_inputs = self._compute_multi_modal_inputs(output, input_ids)", start)])


def padded(output):
    """Runs the lines of a worker that pad routes: the prompt at its left, the response at its right."""
    width, room = len(output.prompt_ids) + 5, len(output.response_ids) + 3
    names = {"torch": torch, "np": np, "output": output, "input_ids": torch.zeros(1, width + room),
             "prompt_output": {"input_ids": torch.zeros(1, width)}}
    exec(padding, names)
    assert not names["routed_experts"][0][:5].any()
    return names["routed_experts"][0][5:]


def check(output, name, index, what):
    ids = output.prompt_ids + output.response_ids
    assert len(output.routed_experts) == len(ids) and not output.routed_experts[-1].any()
    routes = output.as_dict()["routed_experts"]
    assert len(routes) == len(ids) and not routes[-1].any()
    run.routes(routes, name, index, ids, what)
    run.routes(padded(output), name, index, ids, f"{what}, padded")


kinds = set()
for record in run.exported():
    outputs = record.get("outputs", [record])
    for index, one in enumerate(outputs):
        kinds.add(str(one["routed_experts"].dtype))
        check(AgentLoopOutput(**one), one["extra_fields"]["rollout_id"], index, "export")
found, _ = run.scored()
for name in found:
    outputs = to_output(run.attempt(name), 4096)
    for index, output in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        check(output, name, index, "live")
run.done("verl", f" as {', '.join(kinds)}")

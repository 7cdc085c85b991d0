"""verl: `AgentLoopOutput.as_dict()`, which aligns routes with the ids, the padding of its workers, and its distillation losses."""
from column_rows import *

import inspect
import sys
import textwrap
import types

sys.path.insert(0, f"{ROOT}/pkgs/verl")
import torch
from verl.experimental.agent_loop import agent_loop
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.workers.utils.padding import no_padding_2_padding
from turnwright.trainers.verl_rows import to_output

run = Run(("routedExperts",))
TEACHER = f"{ROOT}/pkgs/verl/verl/experimental/teacher_loop/teacher_manager.py"
pad_teacher = load_defs(TEACHER, ["_pad_teacher_outputs"], {"F": torch.nn.functional, "torch": torch})["_pad_teacher_outputs"]
kl = load_defs(f"{ROOT}/pkgs/verl/verl/trainer/distillation/fsdp/losses.py", ["kl_divergence"], {"torch": torch})["kl_divergence"]
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


def nested(values):
    return torch.nested.as_nested_tensor([values], layout=torch.jagged)


def distilled(records):
    """Yields each row's ids, number of prompt ids, and what verl takes of the teacher for the tokens of the response."""
    for record in records:
        for one in record.get("outputs", [record]):
            fields = one["extra_fields"]
            for name in ("teacher_ids", "teacher_logprobs"):
                fields[name] = torch.from_numpy(fields[name])
            output = AgentLoopOutput(**one).as_dict()
            assert not {"teacher_ids", "teacher_logprobs"} & output["extra_fields"].keys()
            data = {"prompts": nested(output["prompts"]), "responses": nested(output["responses"])}
            taken = [no_padding_2_padding(nested(output[name]), data)[0] for name in ("teacher_ids", "teacher_logprobs")]
            yield one["prompt_ids"] + one["response_ids"], len(one["prompt_ids"]), output, taken


rows = 0
for ids, start, output, (own, logprobs) in distilled(taught()):
    assert own.squeeze(-1).tolist() == ids[start:]
    assert logprobs.squeeze(-1).tolist() == [teacher_logprob(ids, token) for token in range(start, len(ids))]
    width = start + 5, len(ids) - start + 3
    _, padded_logprobs = pad_teacher(output["teacher_ids"], output["teacher_logprobs"], *width, start, len(ids) - start, 0)
    assert padded_logprobs[0, 5 + start - 1, 0] == teacher_logprob(ids, start)
    rows += 1
for ids, start, output, (own, logprobs) in distilled(taught_top()):
    for at, token in enumerate(range(start, len(ids))):
        assert (own[at].tolist(), logprobs[at].tolist()) == teacher_top(ids, token, own.shape[1])
    logits = torch.zeros(1, len(ids), 200)
    for row, token in enumerate(range(1, len(ids))):
        if token >= start:
            logits[0, row, teacher_top(ids, token, own.shape[1])[0]] = torch.tensor(teacher_top(ids, token, own.shape[1])[1]) + 20
    logs = logits.log_softmax(-1).gather(-1, output["teacher_ids"].long()[None])
    loss = kl(log_q=logs, log_p=output["teacher_logprobs"][None])[0, start - 1:-1]
    # The policy is proportional to the teacher on its ids: the divergence is the teacher's mass times one logarithm.
    mass = output["teacher_logprobs"][start - 1:-1].exp().sum(-1)
    assert torch.allclose(loss, mass * (output["teacher_logprobs"] - logs[0])[start - 1:-1, 0], atol=1e-5)
run.done("verl", f" as {', '.join(kinds)}, {rows} rows distilled")

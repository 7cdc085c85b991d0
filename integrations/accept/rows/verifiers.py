"""verifiers: the traces of attempts with several rows, their branches, and what survives the wire."""
from several_rows import *

sys.path.insert(0, f"{ROOT}/pkgs/verifiers")
from unittest.mock import MagicMock

# The client of a cloud runtime, which is not used here.
for name in ("prime_sandboxes", "prime_sandboxes.models", "prime_tunnel"):
    sys.modules.setdefault(name, MagicMock())
from turnwright.trainers.verifiers import to_nodes
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.graph import MessageNode
from verifiers.v1.task import TaskData
from verifiers.v1.trace import Reward, Trace


def trace_of(nodes, reward):
    return Trace[TaskData](task={"type": "Turnwright", "data": TaskData(idx=0, prompt="")}, agent={"config": AgentConfig()},
                           nodes=nodes, is_completed=True, ok=True, rewards={"reward": Reward(score=reward, weight=1.0)})


def check(a, trace):
    again = Trace[TaskData].model_validate(trace.model_dump(exclude=set(Trace.model_computed_fields)))
    for own in (trace, again):
        assert own.reward == a.reward, "a trace has one reward"
        assert len(own.branches) == len(a.rows) and all(branch.trainable for branch in own.branches), "a branch a row"
        for branch, row in zip(own.branches, a.rows):
            ids, mask, logprobs, _ = tail(row)
            same(branch.token_ids, ids, "token_ids")
            same(map(int, branch.sampled_mask), mask, "sampled_mask")
            close(branch.logprobs, logprobs, "logprobs")


run = opened()
records = native(sys.argv[2])
assert [record["id"] for record in records] == [a.id for a in run.attempts], "a trace an attempt"
for a, record in zip(run.attempts, records):
    check(a, trace_of([MessageNode.model_validate(node) for node in record["nodes"]], record["reward"]))
    check(a, trace_of(to_nodes(a.handed_over()), a.reward))
run.done("verifiers", "a trace an attempt, a trainable branch a row, export and live; prime-rl weighs them")

"""The parts of trainers that the shims import, without the trainers, and several ranks in one process.

Each has the names and the calling order of the trainer that its comment names; integrations/accept runs the shims with the
trainers' own code.
"""

import importlib
import sys
import threading
import types
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Ranks:
    """accelerate's collectives over threads. Each call waits for all ranks, and fails if one is missing.

    Source: accelerate 1.15.0, `gather_object` (the lists of all ranks as one) and `broadcast_object_list` (in place).
    """

    def __init__(self, count):
        self.count, self.barrier, self.own = count, threading.Barrier(count, timeout=20), threading.local()
        self.sent = [None] * count

    def exchange(self, value):
        self.sent[self.own.rank] = value
        self.barrier.wait()
        everything = list(self.sent)
        self.barrier.wait()
        return everything

    def gather_object(self, values):
        return [value for values in self.exchange(list(values)) for value in values]

    def broadcast_object_list(self, values, from_process=0):
        values[:] = self.exchange(list(values))[from_process]
        return values

    def run(self, work):
        """Returns the results of `work(rank)` on all ranks, or the exceptions that they raised."""
        results = [None] * self.count

        def one(rank):
            self.own.rank = rank
            try:
                results[rank] = work(rank)
            except Exception as error:
                results[rank] = error

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


class Status(Enum):
    PENDING, COMPLETED, TRUNCATED, ABORTED = "pending", "completed", "truncated", "aborted"


@dataclass
class Sample:
    """slime's `Sample`, with the fields that the shim fills. Source: slime 624b824a8, slime/utils/types.py."""

    index: Any = None
    group_index: Any = None
    session_id: Any = None
    reward: Any = None
    prompt: Any = ""
    metadata: dict = field(default_factory=dict)
    rollout_id: Any = None
    status: Any = Status.PENDING
    tokens: list = field(default_factory=list)
    Status = Status
    PrefixCacheInfo = staticmethod(lambda **fields: types.SimpleNamespace(**fields))

    def get_reward_value(self, args):
        return self.reward


@dataclass
class MilesSample:
    """miles' `Sample`, which has no session. Source: miles 31f1ca961, miles/utils/types.py."""

    index: Any = None
    prompt: Any = ""
    metadata: dict = field(default_factory=dict)
    rollout_id: Any = None
    status: Any = Status.PENDING
    Status = Status
    PrefixCacheInfo = staticmethod(lambda **fields: types.SimpleNamespace(**fields))


def modules():
    """Registers modules by name, with their members."""

    class AgentLoopOutput(types.SimpleNamespace):
        pass

    return {
        "torch": {"as_tensor": lambda values: values}, "trl": {"GRPOTrainer": type("GRPOTrainer", (), {})},
        "trl.trainer.utils": {"pad": None},
        "safetensors": {}, "safetensors.torch": {"save_file": lambda *_, **__: None},
        "numpy": {"array": lambda values, dtype=None: values, "float32": float},
        "trl.experimental.async_grpo.async_rollout_worker": {"RolloutSample": types.SimpleNamespace},
        "slime.utils.types": {"Sample": Sample}, "slime.utils.misc": {"load_function": lambda path: path},
        "slime.rollout.base_types": {"RolloutFnTrainOutput": types.SimpleNamespace},
        "slime.rollout.filter_hub.base_types": {"call_dynamic_filter": lambda *_: types.SimpleNamespace(keep=True),
                                                "DynamicFilterOutput": types.SimpleNamespace},
        "miles.utils.types": {"Sample": MilesSample},
        "miles.rollout.base_types": {"GenerateFnInput": types.SimpleNamespace, "GenerateFnOutput": types.SimpleNamespace},
        "verl.experimental.agent_loop.agent_loop": {
            "AgentLoopBase": object, "AgentLoopMetrics": dict, "AgentLoopOutput": AgentLoopOutput,
            "register": lambda _: lambda loop: loop},
        "skyrl.train.generators.base": {
            "GeneratorInput": dict, "GeneratorOutput": dict, "GeneratorInterface": object, "TrajectoryID": object},
        "art": {"Trajectory": types.SimpleNamespace, "TrajectoryGroup": list},
        "art.trajectories": {"LegacyHistory": types.SimpleNamespace},
        "openai.types.chat.chat_completion": {"Choice": types.SimpleNamespace(model_validate=lambda choice: choice)},
        "openrlhf.utils.agent": {"AgentExecutorBase": object},
    }


SHIMS = ("art", "miles", "openrlhf", "skyrl", "skyrl_rows", "slime", "slime_batch", "slime_rewards", "trl", "trl_async",
         "trl_rows", "trl_sample", "trl_trainer", "trl_weights", "verl", "verl_rows",
         "verl_settings")


def import_shim(monkeypatch, name):
    """Imports a shim with stand-ins only. `monkeypatch` undoes the import."""
    for dotted, members in modules().items():
        for length in range(1, dotted.count(".") + 1):
            package = ".".join(dotted.split(".")[:length])
            if package not in modules():
                monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
        module = types.ModuleType(dotted)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, dotted, module)
    for shim in SHIMS:
        # Set first, so that `monkeypatch` restores the earlier state.
        monkeypatch.setitem(sys.modules, f"turnwright.trainers.{shim}", None)
        del sys.modules[f"turnwright.trainers.{shim}"]
    return importlib.import_module(f"turnwright.trainers.{name}")

"""verifiers: an environment server over the rollout service. `python -m turnwright.trainers.verifiers_server
tcp://127.0.0.1:5000`. The tasks are those of the taskset `turnwright-tasks`. The service samples."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import types

import zmq
import zmq.asyncio
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.configs.client import ClientConfig
from verifiers.v1.episode import Episode
from verifiers.v1.serve.delta import DeltaStreamer, TraceSummary, dump, pack
from verifiers.v1.serve.server import EnvServer
from verifiers.v1.serve.types import RunRequest, RunResponse
from verifiers.v1.trace import Trace

from .play import connect, sampling_of
from .played import played_once
from .seeds import drawn_seed
from .verifiers import COLUMNS, rewards_of, to_nodes
from .verifiers_tasks import TurnwrightData


class TurnwrightServer(EnvServer):
    """Plays each run's task once, and sends its trace. A failed attempt is played again by the shim."""

    def __init__(self, address: str = "tcp://127.0.0.1:5000") -> None:
        self.taskset_id, self._running, self.ctx = "turnwright", {}, zmq.asyncio.Context()
        self.env = types.SimpleNamespace(serving=contextlib.nullcontext)
        self.frontend = self.ctx.socket(zmq.ROUTER)
        self.frontend.setsockopt(zmq.LINGER, 0)
        self.frontend.bind(address)
        self.address = self.frontend.getsockopt_string(zmq.LAST_ENDPOINT)

    async def _run(self, req: RunRequest, client_id: bytes, request_id: bytes) -> RunResponse:
        data = TurnwrightData.model_validate(req.task_data)
        attempt = await played_once(connect(), split=data.split, task=data.task_index, seed=drawn_seed(),
                                    sampling=sampling_of(req.sampling.model_dump()), columns=COLUMNS)
        task = {"type": "TurnwrightTask", "data": data}
        trace = Trace[TurnwrightData](
            task=task, agent={"config": AgentConfig()}, nodes=to_nodes(attempt), is_completed=True, ok=True,
            rewards=rewards_of(attempt), stop_condition=attempt.stop_reason,
            info={"rollout": attempt.rollout_id, "is_truncated": attempt.outcome == "truncated"})

        async def send(delta: dict) -> None:
            await self.frontend.send_multipart([client_id, request_id, b"delta", pack(delta)], copy=False)

        async with DeltaStreamer(lambda: [trace], send):
            pass
        summary = TraceSummary(id=trace.id, nodes=len(trace.nodes), calls=0)
        return RunResponse(head=dump(Episode[TurnwrightData](task=task, ok=True), exclude={"traces"}), traces=[summary])


if __name__ == "__main__":
    asyncio.run(TurnwrightServer(*sys.argv[1:2]).run())

"""TRL on several ranks: rank 0 works for all, and each gets its own slice, as with TRL's own vLLM server."""

from __future__ import annotations

from typing import Any, Callable


def process_count(accelerator: Any) -> int:
    """How many ranks there are."""
    return int(getattr(accelerator, "num_processes", 1))


def is_first(accelerator: Any) -> bool:
    """Whether this is the rank that works for all."""
    return process_count(accelerator) == 1 or accelerator.process_index == 0


def publishes(accelerator: Any) -> bool:
    """Whether this rank takes part in publishing the weights: each does where they are sharded, else the first alone."""
    kind = str(getattr(accelerator, "distributed_type", "")).rpartition(".")[2]
    plugin = getattr(getattr(accelerator, "state", None), "deepspeed_plugin", None)
    return kind == "FSDP" or getattr(plugin, "zero_stage", 0) == 3 or is_first(accelerator)


def share(accelerator: Any, own: list[Any], work: Callable[[list[Any]], list[Any]],
          problem: Exception | None = None) -> list[Any]:
    """Has rank 0 work on the items of all ranks, in their order, and returns what came of this rank's own.

    `problem` is what went wrong on this rank before. A problem of one rank is raised on each, so that none waits for
    one that is gone. Every rank calls this equally often.
    """
    if process_count(accelerator) == 1:
        if problem is not None:
            raise problem
        return work(own)
    # Comes with TRL.
    from accelerate.utils import broadcast_object_list, gather_object

    rank = accelerator.process_index
    sent: list[tuple[list[Any], str | None]] = gather_object([(own, problem and f"{type(problem).__name__}: {problem}")])
    if problem is not None:
        raise problem
    for other, (_, why) in enumerate(sent):
        if why is not None:
            raise RuntimeError(f"Rank {other} failed, so rank {rank} stops too: {why}")
    told: list[Any] = [None]
    if rank == 0:
        try:
            told = [(work([item for items, _ in sent for item in items]), None)]
        except Exception as error:
            problem, told = error, [(None, f"{type(error).__name__}: {error}")]
    broadcast_object_list(told, from_process=0)
    if problem is not None:
        raise problem
    done, why = told[0]
    if why is not None:
        raise RuntimeError(f"Rank 0 failed, so rank {rank} stops too: {why}")
    start = sum(len(items) for items, _ in sent[:rank])
    return list(done[start:start + len(own)])

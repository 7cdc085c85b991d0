"""TRL on several ranks: rank 0 plays for all ranks, and each rank gets its slice, as with TRL's vLLM server."""

from __future__ import annotations

from typing import Any, Callable


def process_count(accelerator: Any) -> int:
    """Returns the number of ranks."""
    return int(getattr(accelerator, "num_processes", 1))


def is_first(accelerator: Any) -> bool:
    """True on the rank that plays the attempts of all ranks."""
    return process_count(accelerator) == 1 or accelerator.process_index == 0


def publishes(accelerator: Any) -> bool:
    """True on a rank that publishes the weights: every rank if they are sharded, otherwise the first only."""
    kind = str(getattr(accelerator, "distributed_type", "")).rpartition(".")[2]
    plugin = getattr(getattr(accelerator, "state", None), "deepspeed_plugin", None)
    return kind == "FSDP" or getattr(plugin, "zero_stage", 0) == 3 or is_first(accelerator)


def share(accelerator: Any, own: list[Any], work: Callable[[list[Any]], list[Any]],
          problem: Exception | None = None) -> list[Any]:
    """Lets rank 0 work on the items of all ranks, in order, and returns the results of this rank's items.

    `problem` is an earlier error of this rank. An error of one rank is raised on every rank, so that no rank waits for
    a rank that stopped. Every rank must call this the same number of times.
    """
    if process_count(accelerator) == 1:
        if problem is not None:
            raise problem
        return work(own)
    # A dependency of TRL.
    from accelerate.utils import broadcast_object_list, gather_object

    rank = accelerator.process_index
    sent: list[tuple[list[Any], str | None]] = gather_object([(own, problem and f"{type(problem).__name__}: {problem}")])
    if problem is not None:
        raise problem
    for other, (_, why) in enumerate(sent):
        if why is not None:
            raise RuntimeError(f"Rank {other} failed, so rank {rank} stops too: {why}")
    shared: list[Any] = [None]
    if rank == 0:
        try:
            shared = [(work([item for items, _ in sent for item in items]), None)]
        except Exception as error:
            problem, shared = error, [(None, f"{type(error).__name__}: {error}")]
    broadcast_object_list(shared, from_process=0)
    if problem is not None:
        raise problem
    done, why = shared[0]
    if why is not None:
        raise RuntimeError(f"Rank 0 failed, so rank {rank} stops too: {why}")
    start = sum(len(items) for items, _ in sent[:rank])
    return list(done[start:start + len(own)])

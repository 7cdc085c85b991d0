"""Writes a trainer's own logprobs for `turnwright doctor`, or posts them to a running service."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Callable, Sequence


class TrainerLogprobs:
    """A file of a trainer's logprobs: one JSON line a row.

        with TrainerLogprobs("trainer.jsonl", policy_version=7) as out:
            out.write(row["rolloutId"], row["segment"], logprobs, first=1, length=len(row["tokenIds"]))
    """

    def __init__(self, path: str | PathLike[str], *, policy_version: int | str | None = None) -> None:
        """Opens the file. `policy_version` is the version of the weights that score the rows, unless a call names
        another.
        """
        self._file = open(path, "w", encoding="utf-8")
        self._policy_version = policy_version

    def write(self, rollout_id: str, segment: int, logprobs: Any, *, length: int | None = None, first: int = 0,
              mask: Any = None, policy_version: int | str | None = None, routed_experts: Any = None) -> None:
        """Writes one row. Takes lists, arrays and tensors, on any device and of any precision.

        `logprobs[i]` is the logprob of the row's token `first + i`, given the tokens before it. For logprobs from a
        decoder's logits, `first` is 1. `length` is the number of the row's tokens without padding; entries beyond it
        are left out. Default: `first` plus the number of entries. Entries with a mask of 0, and tokens without an
        entry, have no value in the file. `routed_experts` has the experts that were used, [tokens, layers, experts a
        token], from the row's first token on. It needs NumPy.

        Raises ValueError if lengths do not match.
        """
        version = self._policy_version if policy_version is None else policy_version
        line = to_line(rollout_id, segment, logprobs, length=length, first=first, mask=mask, policy_version=version,
                       routed_experts=routed_experts)
        self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> TrainerLogprobs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class Diagnosis:
    """The mismatch of trainer and engine. `verdict` is `healthy` or a cause, `text` the verdict in words.

    `has_finding` is true if a cause is beyond the thresholds. `figures` has all values that `turnwright doctor --json`
    prints.
    """

    verdict: str
    text: str
    has_finding: bool
    figures: dict[str, Any]


class LiveLogprobs:
    """Posts a trainer's logprobs to a running service, from `Client.trainer_logprobs()`. The rows are posted at the
    end of the block, and earlier if they become large. After an exception in the block, no more rows are posted.
    """

    def __init__(self, post: Callable[[bytes], None], policy_version: int | str | None) -> None:
        self._post = post
        self._policy_version = policy_version
        self._lines: list[bytes] = []
        self._size = 0

    def write(self, batch: str, rollout_id: str, segment: int, logprobs: Any, *, length: int | None = None, first: int = 0,
              mask: Any = None, policy_version: int | str | None = None, routed_experts: Any = None) -> None:
        """Adds a row of a batch: `group.about["batch"]`. The other arguments are those of `TrainerLogprobs.write()`.

        Raises ValueError if lengths do not match, and ServiceError if the service refuses a row. The service then
        takes no row of the request.
        """
        version = self._policy_version if policy_version is None else policy_version
        line = to_line(rollout_id, segment, logprobs, length=length, first=first, mask=mask, policy_version=version,
                       routed_experts=routed_experts)
        self._lines.append(json.dumps({"batch": batch, **line}, separators=(",", ":")).encode() + b"\n")
        self._size += len(self._lines[-1])
        if self._size >= _POST_SIZE:
            self.flush()

    def flush(self) -> None:
        """Posts the rows that were not posted yet."""
        lines, self._lines, self._size = self._lines, [], 0
        if lines:
            self._post(b"".join(lines))

    def __enter__(self) -> LiveLogprobs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if kind is None:
            self.flush()


# Bytes of rows from which on they are posted.
_POST_SIZE = 4 * 1024 * 1024


def to_line(rollout_id: str, segment: int, logprobs: Any, *, length: int | None, first: int, mask: Any,
            policy_version: int | str | None, routed_experts: Any) -> dict[str, Any]:
    """Returns the line of a row, as docs/doctor.md describes it. Raises ValueError if lengths do not match."""
    values = _numbers(logprobs)
    if mask is not None:
        bits = _numbers(mask)
        if len(bits) != len(values):
            raise ValueError(f"Cannot write the logprobs of {rollout_id}: {len(values)} logprobs have a mask of "
                             f"{len(bits)} entries, expected one for each")
        values = [value if bit else None for value, bit in zip(values, bits)]
    length = first + len(values) if length is None else length
    if first < 0 or first > length:
        raise ValueError(f"Cannot write the logprobs of {rollout_id}: they begin at token {first} of {length}, "
                         "expected a token of the row")
    values = [None] * first + list(values)
    values = values[:length] + [None] * (length - len(values))
    line: dict[str, Any] = {"rolloutId": rollout_id, "segment": int(segment), "logprobs": values}
    if policy_version is not None:
        line["policyVersion"] = policy_version if isinstance(policy_version, str) else int(policy_version)
    if routed_experts is not None:
        line["routedExperts"] = _routes(routed_experts, length)
    return line


def _numbers(values: Any) -> Sequence[float | None]:
    """Returns a list of numbers. Values of tensors in half precision stay exact."""
    found = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        # Numbers in a list may be NumPy's or tensors.
        return [None if value is None else float(value) for value in found]
    except (TypeError, ValueError) as error:
        raise ValueError("Cannot write these logprobs: expected one number for each token of one row, not of several rows "
                         "at once") from error


def _routes(routes: Any, length: int) -> dict[str, Any]:
    import numpy

    routes = routes.detach().cpu().numpy() if hasattr(routes, "detach") else numpy.asarray(routes)
    if routes.ndim != 3:
        raise ValueError(f"Cannot write routes of the shape {routes.shape}: expected [tokens, layers, experts a token]")
    routes = routes[:length]
    largest = int(routes.max(initial=0))
    name = "uint8" if largest < 256 and routes.min(initial=0) >= 0 else "int32"
    data = numpy.ascontiguousarray(routes, dtype=numpy.dtype(name).newbyteorder("<")).tobytes()
    return {"shape": list(routes.shape), "dtype": name, "base64": base64.b64encode(data).decode()}

"""verifiers: an attempt as the nodes of a trace. The environment server itself is not here yet."""

from __future__ import annotations

from typing import Any

from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import Branch

from ..attempt import Attempt


def to_branches(attempt: Attempt) -> list[Branch]:
    """A branch a row: what was heard and what was sampled, in turn; logprobs of sampled tokens only."""
    branches = []
    for index, row in enumerate(attempt.rows):
        nodes: list[MessageNode] = []
        at = 0
        for turn in row["turns"]:
            start, end = turn["start"], turn["end"]
            if end <= start:
                continue
            nodes += [_node(row, at, start, len(nodes), False), _node(row, start, end, len(nodes) + 1, True)]
            at = end
        branches.append(Branch(index=index, nodes=nodes))
    return branches


def _node(row: dict[str, Any], start: int, end: int, place: int, sampled: bool) -> MessageNode:
    return MessageNode.model_validate({
        "parent": place - 1 if place else None, "sampled": sampled, "token_ids": row["tokenIds"][start:end],
        "message": {"role": "assistant" if sampled else "user", "content": ""},
        "mask": [sampled] * (end - start), "logprobs": row["logprobs"][start:end] if sampled else []})

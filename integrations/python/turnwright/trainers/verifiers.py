"""verifiers: an attempt as the nodes of a trace; `verifiers_server` sends them."""

from __future__ import annotations

from typing import Any

from verifiers.v1.graph import MessageNode

from ..attempt import Attempt


def to_nodes(attempt: Attempt) -> list[MessageNode]:
    """Returns alternating nodes of input and sampled tokens, a branch a row. Only sampled nodes have logprobs."""
    nodes: list[MessageNode] = []
    for row in attempt.rows:
        at, parent = 0, None
        for turn in row["turns"]:
            start, end = turn["start"], turn["end"]
            if end <= start:
                continue
            for first, last, sampled in ((at, start, False), (start, end, True)):
                nodes.append(_node(row, first, last, parent, sampled))
                parent = len(nodes) - 1
            at = end
    return nodes


def _node(row: dict[str, Any], start: int, end: int, parent: int | None, sampled: bool) -> MessageNode:
    return MessageNode.model_validate({
        "parent": parent, "sampled": sampled, "token_ids": row["tokenIds"][start:end],
        "message": {"role": "assistant" if sampled else "user", "content": ""},
        "mask": [sampled] * (end - start), "logprobs": row["logprobs"][start:end] if sampled else []})

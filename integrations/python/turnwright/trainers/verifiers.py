"""verifiers: an attempt as the nodes of a trace; `verifiers_server` sends them."""

from __future__ import annotations

from typing import Any

from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import Reward

from ..attempt import Attempt, lineage_of
from .several_rows import warn_once
from .verifiers_columns import COLUMNS, columns_adder


def to_nodes(attempt: Attempt) -> list[MessageNode]:
    """Returns alternating nodes of input and sampled tokens, a branch a row. Only sampled nodes have logprobs. A row's
    first sampled node has a link to the turn that the row comes from."""
    nodes: list[dict[str, Any]] = []
    # The sampled nodes of each row, by the turn's place.
    turns: list[dict[int, int]] = []
    for row in attempt.trained_rows:
        at, parent = 0, None
        add = columns_adder(attempt, row)
        turns.append({})
        for place, turn in enumerate(row["turns"]):
            start, end = turn["start"], turn["end"]
            if end <= start:
                continue
            for first, last, sampled in ((at, start, False), (start, end, True)):
                nodes.append({**_node(row, first, last, parent, sampled), **add(first, last, sampled)})
                parent = len(nodes) - 1
            at, turns[-1][place] = end, len(nodes) - 1
    _link(nodes, turns, [lineage_of(row).get("from") for row in attempt.trained_rows])
    return [MessageNode.model_validate(node) for node in nodes]


def _node(row: dict[str, Any], start: int, end: int, parent: int | None, sampled: bool) -> dict[str, Any]:
    return {"parent": parent, "sampled": sampled, "token_ids": row["tokenIds"][start:end],
            "message": {"role": "assistant" if sampled else "user", "content": ""},
            "mask": [sampled] * (end - start), "logprobs": row["logprobs"][start:end] if sampled else []}


def _link(nodes: list[dict[str, Any]], turns: list[dict[int, int]], origins: list[dict[str, Any] | None]) -> None:
    links = [(own, turns[one["row"]].get(one["turn"]), one["edge"]) for own, one in zip(turns, origins) if one]
    if links and "semantic_parents" not in MessageNode.model_fields:
        warn_once("verifiers' links", "This version of verifiers has no links between turns (semantic_parents): the "
                  "lineage of an attempt's rows is left out")
        return
    resumed = {source for _, source, edge in links if edge == "compaction"}
    for own, source, edge in links:
        # verifiers trains no compaction attempt that nothing continues, and the rows here are all trained.
        if source is not None and (edge != "compaction_attempt" or max(own.values()) in resumed):
            nodes[min(own.values())]["semantic_parents"] = [{"node": source, "type": edge}]


def rewards_of(attempt: Attempt) -> dict[str, Reward]:
    """Returns the components of the reward with their weights, or the reward alone if there are none."""
    components = attempt.about.get("rewardComponents") or {"turnwright": {"value": attempt.reward, "weight": 1.0}}
    return {name: Reward(score=one["value"], weight=one["weight"]) for name, one in components.items()}

"""What a training run says of its rollouts, step by step: for TensorBoard, W&B, or a file of JSON lines."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Iterable, Sequence

from .rows import Row


def pass_hat_k(rewards: Iterable[Sequence[float]], k: int) -> float | None:
    """The chance that k attempts at a task all succeed, over tasks with at least k; None where there is none."""
    chances = [comb(sum(r >= 1 for r in own), k) / comb(len(own), k) for own in rewards if len(own) >= k]
    return fmean(chances) if chances else None


def step_metrics(rows: Sequence[Row], *, trainer_version: int | None = None,
                 ratios: Sequence[float] | None = None) -> dict[str, float]:
    """Numbers of one step. What cannot be known (no reward, no version) is absent, not 0.

    `trainer_version` is the version that is trained: staleness is how many versions older a sampled token
    is. `ratios` are those of the trained tokens, new policy to recorded.
    """
    episodes: dict[str, list[Row]] = {}
    for row in rows:
        episodes.setdefault(row["rolloutId"], []).append(row)
    out: dict[str, float] = {"rollout/episodes": len(episodes), "rollout/rows": len(rows)}
    rewards: dict[str, list[float]] = {}
    for own in episodes.values():
        if "reward" in own[0]:
            rewards.setdefault(own[0]["groupId"], []).append(float(own[0]["reward"]))
    scored = [reward for own in rewards.values() for reward in own]
    out["rollout/unscored"] = len(episodes) - len(scored)
    if scored:
        out |= {"reward/mean": fmean(scored), "reward/std": pstdev(scored),
                "reward/groups_with_signal": fmean(len(set(own)) > 1 for own in rewards.values())}
    for k in (1, 2, 4, 8):
        if (value := pass_hat_k(rewards.values(), k)) is not None:
            out[f"pass^{k}"] = value
    if episodes:
        out |= _episode_metrics(episodes.values())
    staleness = [trainer_version - int(version) for row in rows for version, bit in
                 zip(row["policyVersions"], row["lossMask"]) if bit == 1 and version.isdecimal()] \
        if trainer_version is not None else []
    if staleness:
        out |= {"staleness/mean": fmean(staleness), "staleness/max": max(staleness)}
    if ratios:
        out |= {"ratio/mean": fmean(ratios), "ratio/max_deviation": max(abs(r - 1) for r in ratios)}
    return out


def _episode_metrics(episodes: Iterable[list[Row]]) -> dict[str, float]:
    episodes = list(episodes)
    sampled = [sum(sum(row["lossMask"]) for row in own) for own in episodes]
    whole = [sum(len(row["tokenIds"]) - row["promptLength"] for row in own) for own in episodes]
    turns = [sum(len(row["turns"]) for row in own) for own in episodes]
    malformed = [own[0]["metadata"].get("formatErrorCount", 0) for own in episodes]
    return {
        "length/sampled_mean": fmean(sampled), "length/sampled_max": max(sampled),
        "length/response_mean": fmean(whole), "length/turns_mean": fmean(turns),
        "rollout/truncated": fmean(own[0]["outcome"] == "truncated" for own in episodes),
        "rollout/failed": fmean(own[0]["outcome"] == "failed" for own in episodes),
        "calls/malformed_per_turn": sum(malformed) / max(1, sum(turns)),
    }


class MetricsFile:
    """Metrics over steps as JSON lines. A step that is written again replaces the one before when read."""

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Adds a line."""
        with open(self._file, "a", encoding="utf-8") as out:
            out.write(json.dumps({"step": step, **metrics}) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """The steps in their order, each as it was written last."""
        with open(self._file, encoding="utf-8") as lines:
            entries = [json.loads(line) for line in lines if line.strip()]
        return [entry for _, entry in sorted({entry["step"]: entry for entry in entries}.items())]


def log_to(sink: Any, step: int, metrics: dict[str, float]) -> None:
    """Gives metrics to a TensorBoard SummaryWriter (`add_scalar`) or a W&B run (`log`)."""
    if hasattr(sink, "add_scalar"):
        for name, value in metrics.items():
            sink.add_scalar(name, value, step)
    else:
        sink.log(metrics, step=step)

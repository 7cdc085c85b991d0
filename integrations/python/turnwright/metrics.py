"""Metrics of a training run's rollouts by step, for TensorBoard, W&B, or a file of JSON lines."""

from __future__ import annotations

import json
from math import comb, isfinite, isnan
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Iterable

from .rows import Row, read_lines
from .whole_number import whole_number


def is_success(reward: float) -> bool:
    """True if a reward counts as success: 1, within a millionth, as in the report."""
    return 1 - 1e-6 <= reward <= 1 + 1e-6


def pass_hat_k(rewards: Iterable[Iterable[float | None]], k: int) -> float | None:
    """Returns the chance that k attempts at a task all succeed: the report's pass^k.

    `rewards` has the rewards of each task's attempts. An attempt without a reward (None or NaN) does not count.
    The mean is over the tasks with at least k scored attempts. Returns None if there is no such task.
    """
    if whole_number("k", k) < 1:
        raise ValueError(f"Cannot use k={k}: expected at least 1")
    chances: list[float] = []
    for own in rewards:
        scored = [reward for reward in own if reward is not None and not isnan(reward)]
        if len(scored) >= k:
            chances.append(comb(sum(map(is_success, scored)), k) / comb(len(scored), k))
    return fmean(chances) if chances else None


def step_metrics(rows: Iterable[Row], *, trainer_version: int | None = None,
                 ratios: Iterable[float] | None = None) -> dict[str, float]:
    """Returns the metrics of one step. An unknown value (no reward, no version) is absent, not 0.

    `trainer_version` is the version in training. Staleness is the distance of this version from a sampled token's
    version. `ratios` are the probability ratios of the trained tokens: the new policy's probability divided by the
    recorded one. pass^k leaves out attempts that fork from another attempt of the rows (`forkedFrom`), as the report
    does. Each episode counts once, also if it has several rows. Then there are metrics by role (`role/NAME/...`), too:
    `token_share` is the role's part of all trained tokens, `reward_mean` the mean over the episodes with such a row.
    `reward/component/NAME` is the mean value of a component of the rewards, without its weight, over the episodes that
    have this component.
    """
    rows, ratios = list(rows), [] if ratios is None else [float(ratio) for ratio in ratios]
    episodes: dict[str, list[Row]] = {}
    for row in rows:
        episodes.setdefault(row["rolloutId"], []).append(row)
    out: dict[str, float] = {"rollout/episodes": len(episodes), "rollout/rows": len(rows)}
    rewards: dict[str, list[float]] = {}
    trials: dict[str, list[float]] = {}
    for own in episodes.values():
        reward = own[0].get("reward")
        # Tables and safetensors write an absent reward as NaN.
        if reward is None or isnan(reward):
            continue
        rewards.setdefault(own[0]["groupId"], []).append(float(reward))
        # A fork of another attempt of the same run is not an independent trial.
        fork: Row = own[0].get("forkedFrom") or {}
        parent = fork.get("rolloutId")
        if parent not in episodes and parent != f"{own[0]['groupId']}#0":
            trials.setdefault(own[0]["taskId"], []).append(float(reward))
    scored = [reward for own in rewards.values() for reward in own]
    out["rollout/unscored"] = len(episodes) - len(scored)
    components: dict[str, list[float]] = {}
    for own in episodes.values():
        for name, part in (own[0]["metadata"].get("rewardComponents") or {}).items():
            components.setdefault(name, []).append(float(part["value"]))
    out |= {f"reward/component/{name}": fmean(values) for name, values in components.items()}
    if scored:
        out |= {"reward/mean": fmean(scored), "reward/std": pstdev(scored),
                "reward/groups_with_signal": fmean(len(set(own)) > 1 for own in rewards.values())}
    for k in (1, 2, 4, 8):
        if (value := pass_hat_k(trials.values(), k)) is not None:
            out[f"pass^{k}"] = value
    if episodes:
        out |= _episode_metrics(episodes.values()) | _role_metrics(episodes.values())
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


def _role_metrics(episodes: Iterable[list[Row]]) -> dict[str, float]:
    """Returns the metrics of rows by role, if an episode has several rows. The only row of an episode without lineage
    has the role `main`.
    """
    rows: dict[str, list[Row]] = {}
    rewards: dict[str, list[float]] = {}
    counts = []
    for own in episodes:
        trained = [row for row in own if any(row["lossMask"])]
        counts.append(len(trained))
        roles = [(row["metadata"].get("lineage") or {"role": "main"})["role"] for row in trained]
        for role, row in zip(roles, trained):
            rows.setdefault(role, []).append(row)
        reward = own[0].get("reward")
        if reward is None or isnan(reward):
            continue
        # An episode counts once for each role of its rows.
        for role in set(roles):
            rewards.setdefault(role, []).append(float(reward))
    if max(counts) < 2:
        return {}
    tokens = {role: sum(sum(row["lossMask"]) for row in own) for role, own in rows.items()}
    return {
        "rows/per_episode_mean": fmean(count for count in counts if count > 0), "rows/per_episode_max": max(counts),
        **{f"role/{role}/rows": len(own) for role, own in rows.items()},
        **{f"role/{role}/token_share": own / sum(tokens.values()) for role, own in tokens.items()},
        **{f"role/{role}/reward_mean": fmean(own) for role, own in rewards.items()},
    }


class MetricsFile:
    """Metrics by step, as JSON lines. If a step is written twice, `read()` returns the later one."""

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file)

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Appends a line. Writes NaN and infinity as null, because JSON has neither. Removes a line that a crash cut off."""
        numbers = {name: value if isinstance(value, int) else float(value) for name, value in metrics.items()}
        line = {"step": whole_number("step", step),
                **{name: value if isfinite(value) else None for name, value in numbers.items()}}
        self._cut_torn_line()
        with open(self._file, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")

    def read(self) -> list[dict[str, Any]]:
        """Returns the steps in order, each with its newest values. Empty if the file does not exist."""
        entries = list(read_lines(self._file)) if self._file.exists() else []
        return [entry for _, entry in sorted({entry["step"]: entry for entry in entries}.items())]

    def _cut_torn_line(self) -> None:
        if not self._file.exists() or self._file.stat().st_size == 0:
            return
        with open(self._file, "r+b") as file:
            file.seek(-1, 2)
            if file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)


def log_to(sink: Any, step: int, metrics: dict[str, float]) -> None:
    """Writes metrics to a TensorBoard SummaryWriter (`add_scalar`) or a W&B run (`log`)."""
    if hasattr(sink, "add_scalar"):
        for name, value in metrics.items():
            sink.add_scalar(name, value, step)
    else:
        sink.log(metrics, step=step)

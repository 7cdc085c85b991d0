"""slime: its `Sample`, filled from an attempt."""

from __future__ import annotations

import copy

from slime.utils.types import Sample

from ..attempt import Attempt, Unfit


def check(args) -> None:
    """Raises Unfit, before anything is played, for settings that need ids that are not recorded."""
    if getattr(args, "rollout_top_p", 1.0) != 1.0:
        raise Unfit("slime replays each token's nucleus with rollout_top_p, and it is not recorded: leave it at 1")


def fill(args, sample: Sample, attempt: Attempt) -> Sample | list[Sample]:
    """Returns the filled sample. Several rows of one attempt become samples with one rollout id."""
    if len(attempt.rows) > 1 and getattr(args, "custom_reward_post_process_path", None) is None:
        raise Unfit(f"{attempt.rollout_id} has several rows, and slime counts rewards off by the row: "
                    "set --custom-reward-post-process-path, or play without --history split")
    filled = []
    for row in attempt.rows:
        own, start = copy.copy(sample), row["promptLength"]
        own.tokens, own.response_length = row["tokenIds"], len(row["tokenIds"]) - start
        own.loss_mask, own.rollout_log_probs = row["lossMask"][start:], row["logprobs"][start:]
        own.reward, own.status = attempt.reward, Sample.Status(attempt.outcome)
        own.rollout_id = sample.rollout_id if sample.rollout_id is not None else sample.index
        own.weight_versions = [row["policyVersions"][t["end"] - 1] for t in row["turns"] if t["end"] > t["start"]]
        own.non_generation_time = attempt.about.get("environmentMs", 0) / 1000
        own.session_id = attempt.rollout_id
        own.prefix_cache_info = Sample.PrefixCacheInfo(
            cached_tokens=attempt.about.get("cachedTokenCount", 0),
            total_prompt_tokens=attempt.about.get("promptTokenCount", 0))
        own.metadata = {**sample.metadata, **row["metadata"], "rollout": attempt.rollout_id,
                        "task": row["taskId"], "source_name": attempt.about.get("environment"),
                        "reward_details": attempt.about.get("rewardDetails"),
                        "user_usage": attempt.about.get("userUsage"), "stop_reason": attempt.stop_reason}
        filled.append(own)
    return filled[0] if len(filled) == 1 else filled

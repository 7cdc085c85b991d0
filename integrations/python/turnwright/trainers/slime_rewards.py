"""slime: functions that count each attempt once, also if it has several rows.

    --custom-reward-post-process-path turnwright.trainers.slime_rewards.by_attempt
    --dynamic-sampling-filter-path turnwright.trainers.slime_rewards.differ

A group is a `group_index`, an attempt a `rollout_id`. All rows of an attempt carry its reward.
"""

from __future__ import annotations

from slime.rollout.filter_hub.base_types import DynamicFilterOutput

from ..attempt import Unfit
from .several_rows import group_advantages

CENTRED = ("grpo", "gspo", "cispo", "reinforce_plus_plus_baseline")


def by_attempt(args, samples):
    """Returns the raw rewards, and those that slime computes for one row an attempt: each row has the reward of its
    attempt.
    """
    raw = [sample.get_reward_value(args) for sample in samples]
    if args.advantage_estimator not in CENTRED or not args.rewards_normalization:
        return raw, raw
    over_std = args.advantage_estimator != CENTRED[-1] and args.grpo_std_normalization
    names = [sample.index if sample.rollout_id is None else sample.rollout_id for sample in samples]
    groups = {}
    for sample, name, reward in zip(samples, names, raw):
        if groups.setdefault(sample.group_index, {}).setdefault(name, reward) != reward:
            raise Unfit(f"The rows of attempt {name} have different rewards: each must carry the attempt's whole reward")
    advantages = {}
    for group, attempts in groups.items():
        advantages[group] = dict(zip(attempts, group_advantages(list(attempts.values()), over_std=over_std)))
    return raw, [advantages[sample.group_index][name] for sample, name in zip(samples, names)]


def differ(args, group, **_):
    """Keeps a group whose attempts have different rewards. slime's own filter fails on attempts with several rows."""
    rewards = [(one[0] if isinstance(one, list) else one).get_reward_value(args) for one in group]
    keep = max(rewards) - min(rewards) > 1e-6
    return DynamicFilterOutput(keep=keep, reason=None if keep else f"zero_std_{round(rewards[0], 1)}")


def remedies(args) -> list[str]:
    """Returns the changes of settings with which each attempt weighs one, also if it has several rows.

    Source: slime 624b824a8, slime/ray/rollout.py, slime/utils/dp_schedule.py and slime/rollout/sglang_rollout.py.
    """
    needed = []
    if not getattr(args, "custom_reward_post_process_path", None):
        needed.append("set --custom-reward-post-process-path turnwright.trainers.slime_rewards.by_attempt")
    if (getattr(args, "dynamic_sampling_filter_path", None) or "").startswith("slime."):
        needed.append("set --dynamic-sampling-filter-path turnwright.trainers.slime_rewards.differ")
    if not getattr(args, "use_dynamic_batch_size", False):
        needed.append("set --use-dynamic-batch-size")
    wrong = ("group_rm", "log_passrate", "partial_rollout")
    return needed + [f"remove --{name.replace('_', '-')}" for name in wrong if getattr(args, name, False)]

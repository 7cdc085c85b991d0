"""verl: the settings with which the rows of an attempt weigh as one, and with which its trainer logs components."""

from __future__ import annotations


def takes_components(config) -> bool:
    """True if verl's trainer logs the components of rewards, also if only some attempts have them.

    Source: verl 0.9.1, verl/trainer/ppo/v1/trainer_base.py; AgentLoopWorker of the other trainer wants equal names in all.
    """
    return bool(config.trainer.get("use_v1", False))


def remedies(config) -> list[str]:
    """Returns the changes of settings with which each attempt weighs one. `config` is verl's whole configuration."""
    actor, needed = config.actor_rollout_ref.actor, []
    if not config.trainer.get("use_v1", False):
        needed.append("set trainer.use_v1=True")
    if str(config.algorithm.adv_estimator) != "grpo":
        needed.append("set algorithm.adv_estimator=grpo")
    if actor.get("loss_agg_mode", "token-mean") != "token-mean":
        needed.append("set actor_rollout_ref.actor.loss_agg_mode=token-mean")
    if not actor.get("use_dynamic_bsz", False):
        needed.append("set actor_rollout_ref.actor.use_dynamic_bsz=True")
    return needed

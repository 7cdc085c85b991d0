"""AReaL: a workflow that plays a whole group, for attempts with several rows. AReaL normalises rewards by the row, so
the rows carry advantages in place of rewards: set `gconfig.n_samples=1`, `actor.reward_norm=null` and
`actor.adv_norm=null`. `actor.discount` and `actor.gae_lambda` stay 1, `actor.kl_ctl` is 0, and
`actor.overlong_reward_penalty` is off."""

from __future__ import annotations

from areal import workflow_context
from areal.api.workflow_api import RolloutWorkflow
from areal.utils import stats_tracker

from ..attempt import Attempt
from .areal import to_tensors
from .one_play import Play
from .play import connect
from .played import played
from .seeds import drawn_seed
from .several_rows import group_advantages
from .task_name import read_task


def to_batch(attempts: list[Attempt], over_std: bool = True) -> dict:
    """Returns all rows of a group. Each row carries its attempt's advantage."""
    advantages = group_advantages([attempt.reward for attempt in attempts], over_std=over_std, epsilon=1e-5)
    return to_tensors([(row, own) for attempt, own in zip(attempts, advantages) for row in attempt.responses()])


class TurnwrightGroupWorkflow(RolloutWorkflow):
    """Plays `samples` attempts at a task an episode. An advantage is the reward minus the group's mean, divided by the
    group's standard deviation with `over_std`. AReaL's statistic `reward` has the rewards, one an attempt."""

    def __init__(self, samples: int = 8, over_std: bool = True) -> None:
        self._samples, self._over_std = samples, over_std

    async def arun_episode(self, engine, data):
        split, task = read_task(data["task_index"], data.get("split"))
        attempts = await played(Play(connect(), split=split, task=task, samples=self._samples, seed=drawn_seed()))
        for attempt in attempts:
            stats_tracker.get(workflow_context.stat_scope()).scalar(reward=attempt.reward)
        return to_batch(attempts, self._over_std)

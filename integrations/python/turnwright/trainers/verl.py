"""verl: an agent loop, by `rollout.agent.default_agent_loop=turnwright` and a file at `agent_loop_config_path` that
names this class. The dataset's `extra_info.index` is the task's index. Set rollout correction to bypass mode, so that
the loss uses the recorded logprobs."""

from __future__ import annotations

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

from .play import connect, sampling_of
from .played import played_once
from .seeds import drawn_seed
from .several_rows import require, warn_once
from .task_name import read_task
from .verl_rows import to_output
from .verl_settings import remedies, takes_components


@register("turnwright")
class TurnwrightAgentLoop(AgentLoopBase):
    """Plays one rollout for each call, at the task of the dataset's row."""

    async def run(self, sampling_params, **kwargs) -> AgentLoopOutput | list[AgentLoopOutput]:
        about = kwargs["extra_info"]
        split, task = read_task(about["index"], about.get("split"))
        sampling = sampling_of(sampling_params)
        attempt = await played_once(connect(), split=split, task=task, seed=drawn_seed(), sampling=sampling,
                                    columns=("routedExperts",))
        if attempt.row_count > 1:
            require(attempt, "verl", remedies(self.config))
            self._warn_of_mini_batches()
        with_components = bool(attempt.components) and takes_components(self.config)
        return to_output(attempt, self.rollout_config.response_length, with_components)

    def _warn_of_mini_batches(self) -> None:
        # A step has at least train_batch_size × n attempts' rows, and verl cuts it into ppo_mini_batch_size × n rows.
        size, prompts = self.config.actor_rollout_ref.actor.ppo_mini_batch_size, self.config.data.train_batch_size
        if size <= prompts:
            warn_once("verl mini-batches", f"actor_rollout_ref.actor.ppo_mini_batch_size={size} cuts a step with more rows "
                      "than attempts into several updates, also through an attempt. For one update a step, set it to at "
                      f"least data.train_batch_size={prompts} times the mean rows of an attempt")

"""OpenRLHF: set `--train.agent_func_path` to this file. The label is the task's index, or its split
and index such as `test/4`."""

from __future__ import annotations

from openrlhf.utils.agent import AgentExecutorBase

from turnwright.trainers.play import connect, sampling_of
from turnwright.trainers.played import played_once
from turnwright.trainers.seeds import drawn_seed
from turnwright.trainers.task_name import read_task


class AgentExecutor(AgentExecutorBase):
    """Plays one rollout a call. Logprobs cover the whole row. The trainer drops the first itself."""

    async def execute(self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None):
        split, task = read_task(label)
        attempt = await played_once(connect(), split=split, task=task, seed=drawn_seed(), sampling=sampling_of(sampling_params))
        row = attempt.response()
        end = len(row.ids)
        ranges = [[t["start"], t["end"]] for t in attempt.rows[0]["turns"] if t["start"] < t["end"] <= end]
        return {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None,
                "reward": attempt.reward, "scores": attempt.reward, "observation_tokens": row.ids,
                "action_ranges": ranges, "rollout_log_probs": row.over_whole(row.logprobs, 0.0),
                "truncated": attempt.outcome == "truncated", "extra_logs": {}}

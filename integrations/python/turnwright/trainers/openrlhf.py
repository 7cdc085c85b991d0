"""OpenRLHF: `--train.agent_func_path` to this file. The label is the task's index."""

from __future__ import annotations

import asyncio
import uuid

from openrlhf.utils.agent import AgentExecutorBase

from turnwright.trainers.play import connect, play_scored


class AgentExecutor(AgentExecutorBase):
    """One rollout a call. Logprobs stand over the whole row: the trainer drops the first itself."""

    async def execute(self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None):
        sampling = {"temperature": getattr(sampling_params, "temperature", 1.0)}
        (attempt,) = await asyncio.to_thread(
            play_scored, connect(), task=int(label), seed=uuid.uuid4().int % 2**31,
            sampling=sampling)
        row = attempt.response()
        end = len(row.ids)
        ranges = [[t["start"], t["end"]] for t in attempt.rows[0]["turns"] if t["start"] < t["end"] <= end]
        return {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None,
                "reward": attempt.reward, "scores": attempt.reward, "observation_tokens": row.ids,
                "action_ranges": ranges, "rollout_log_probs": row.over_whole(row.logprobs, 0.0),
                "truncated": attempt.outcome == "truncated", "extra_logs": {}}

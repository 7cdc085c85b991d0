"""OpenRLHF: set `--train.agent_func_path` to this file. The label is the task's index, or its split
and index such as `test/4`. OpenRLHF takes one row an attempt: of several, the one with the most trained tokens."""

from __future__ import annotations

from openrlhf.utils.agent import AgentExecutorBase

from turnwright.attempt import to_response
from turnwright.trainers.play import connect, sampling_of
from turnwright.trainers.played import played_once
from turnwright.trainers.seeds import drawn_seed
from turnwright.trainers.several_rows import warn_once
from turnwright.trainers.task_name import read_task


class AgentExecutor(AgentExecutorBase):
    """Plays one rollout for each call. Logprobs cover the whole row. The trainer drops the first itself."""

    async def execute(self, prompt, label, sampling_params, max_length, hf_tokenizer, llm_engine, images=None):
        split, task = read_task(label)
        attempt = await played_once(connect(), split=split, task=task, seed=drawn_seed(), sampling=sampling_of(sampling_params))
        return {"prompt": prompt, "label": label, "images": None, "mm_train_inputs": None, **to_answer(attempt)}


def to_answer(attempt) -> dict:
    """Returns the parts of OpenRLHF's answer that come from the attempt. `extra_logs` counts what is left out, and has the
    values of the reward's components."""
    longest = max(attempt.trained_rows, key=lambda row: sum(row["lossMask"]))
    row, left_out = to_response(longest), attempt.row_count - 1
    tokens = attempt.token_count - sum(row.mask)
    if left_out:
        warn_once("OpenRLHF's rows", f"OpenRLHF takes one row an attempt: of the {left_out + 1} rows of "
                  f"{attempt.rollout_id} the longest is trained, and {tokens} of {attempt.token_count} tokens are left out. "
                  "extra_logs has the counts of every attempt: rows_left_out, tokens_left_out")
    end = len(row.ids)
    ranges = [[t["start"], t["end"]] for t in longest["turns"] if t["start"] < t["end"] <= end]
    return {"reward": attempt.reward, "scores": attempt.reward, "observation_tokens": row.ids, "action_ranges": ranges,
            "rollout_log_probs": row.over_whole(row.logprobs, 0.0), "truncated": attempt.outcome == "truncated",
            "extra_logs": {"rows_left_out": float(left_out), "tokens_left_out": float(tokens),
                           **attempt.component_metrics}}

"""Exports rows for each trainer as the trainer's own code reads them: a second implementation of `src/export`.

    python3 test/export/reference-export.py

Reads `samples.jsonl.gz` (eight rows of our storefront, two groups) and writes one file a trainer beside it.
`integrations/accept/` ran the real code of each trainer on these files; `npm run accept -- all` does so for our exports.
"""

import gzip
import json
import pathlib

HERE = pathlib.Path(__file__).parent
STOP_REASONS = {"completed": "stop", "truncated": "length", "failed": "abort"}


class Row:
    """A row without the tokens after its last trained token."""

    def __init__(self, row, repetition):
        mask = row["lossMask"]
        end = max(index + 1 for index, bit in enumerate(mask) if bit)
        self.row = row
        self.repetition = repetition
        self.prompt_length = row["promptLength"]
        self.ids = row["tokenIds"][:end]
        self.mask = mask[:end]
        self.logprobs = row["logprobs"][:end]
        self.versions = [version_number(version) for version in row["policyVersions"][:end]]
        self.turns = [turn for turn in row["turns"] if turn["end"] > turn["start"]]

    def __getitem__(self, name):
        return self.row.get(name)

    def turn_of(self, position):
        """The index of the turn that sampled the token at a position, or -1."""
        for index, turn in enumerate(self.row["turns"]):
            if turn["start"] <= position < turn["end"]:
                return index
        return -1


def version_number(version):
    """A policy version as an integer: 0 if it has no name, -2 if the name is not a number."""
    if version == "":
        return 0
    return int(version) if version.lstrip("-").isdigit() else -2


def trl(row):
    start = row.prompt_length
    return {
        "prompt_ids": row.ids[:start],
        "completion_ids": row.ids[start:],
        "logprobs": row.logprobs[start:],
        "env_mask": row.mask[start:],
        "env_reward": row["reward"],
        "group": row["groupId"],
    }


def verl(row):
    start = row.prompt_length
    versions = [version for version, bit in zip(row.versions, row.mask) if bit]
    return {
        "prompt_ids": row.ids[:start],
        "response_ids": row.ids[start:],
        "response_mask": row.mask[start:],
        "response_logprobs": row.logprobs[start:],
        "reward_score": row["reward"],
        "num_turns": 2 * len(row["turns"]),
        "metrics": {},
        "extra_fields": {
            "uid": row["groupId"],
            "rollout_id": row["rolloutId"],
            "status": row["outcome"],
            "min_global_steps": min(versions, default=-1),
            "max_global_steps": max(versions, default=-1),
        },
    }


def openrlhf(row):
    return {
        "prompt": row["groupId"],
        "label": row["taskId"],
        "observation_tokens": row.ids,
        "action_ranges": [[turn["start"], turn["end"]] for turn in row.turns],
        "rollout_log_probs": row.logprobs,
        "reward": row["reward"],
        "scores": row["reward"],
        "truncated": row["outcome"] == "truncated",
        "extra_logs": {},
        "images": None,
        "mm_train_inputs": None,
    }


def areal(row):
    return {
        "input_ids": row.ids,
        "loss_mask": row.mask,
        "logprobs": row.logprobs,
        "versions": [version if bit else -1 for version, bit in zip(row.versions, row.mask)],
        "turn_ids": [row.turn_of(position) for position in range(len(row.ids))],
        "rewards": row["reward"],
        "group": row["groupId"],
    }


def nemo_rl(row):
    output = [
        {
            "type": "message",
            "id": f"m{index}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "", "annotations": []}],
            "prompt_token_ids": row.ids[: turn["start"]],
            "generation_token_ids": row.ids[turn["start"] : turn["end"]],
            "generation_log_probs": row.logprobs[turn["start"] : turn["end"]],
        }
        for index, turn in enumerate(row.turns)
    ]
    return {
        "responses_create_params": {"input": []},
        "reward": row["reward"],
        "group": row["groupId"],
        "response": {"id": row["rolloutId"], "object": "response", "output": output},
    }


def verifiers(row):
    nodes = []
    read = 0
    for turn in row.turns:
        start, end = turn["start"], turn["end"]
        nodes.append(node(nodes, "user", row.ids[read:start], []))
        nodes.append(node(nodes, "assistant", row.ids[start:end], row.logprobs[start:end]))
        read = end
    return {
        "id": row["rolloutId"],
        "group": row["groupId"],
        "reward": row["reward"],
        "stop_condition": row["stopReason"],
        "is_truncated": row["outcome"] == "truncated",
        "nodes": nodes,
    }


def node(nodes, role, ids, logprobs):
    sampled = role == "assistant"
    return {
        "parent": len(nodes) - 1 if nodes else None,
        "message": {"role": role, "content": ""},
        "sampled": sampled,
        "token_ids": ids,
        "mask": [sampled] * len(ids),
        "logprobs": logprobs,
    }


def skyrl(rows):
    return {
        "prompt_token_ids": [row.ids[: row.prompt_length] for row in rows],
        "response_ids": [row.ids[row.prompt_length :] for row in rows],
        "rewards": [float(row["reward"]) for row in rows],
        "loss_masks": [row.mask[row.prompt_length :] for row in rows],
        "rollout_logprobs": [row.logprobs[row.prompt_length :] for row in rows],
        "stop_reasons": [STOP_REASONS[row["outcome"]] for row in rows],
        "trajectory_ids": [
            {"instance_id": row["groupId"], "repetition_id": row.repetition} for row in rows
        ],
        "rollout_metrics": {},
    }


def write(name, records):
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    # A fixed time makes the file the same each time.
    with open(HERE / f"{name}.jsonl.gz", "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(text.encode())


def main():
    with gzip.open(HERE / "samples.jsonl.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    groups = [line["groupId"] for line in lines]
    rows = [Row(line, groups[:index].count(line["groupId"])) for index, line in enumerate(lines)]
    for export in [trl, verl, openrlhf, areal, nemo_rl, verifiers]:
        write(export.__name__, [export(row) for row in rows])
    write("skyrl", [skyrl(rows)])


main()

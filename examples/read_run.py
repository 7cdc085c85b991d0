import json
import statistics
from collections import defaultdict
from pathlib import Path


def lines(file):
    """Yields the values of a file of JSON lines. Skips a last line that is still being written."""
    with open(file, encoding="utf-8") as text:
        for line in text:
            if line.endswith("\n"):
                yield json.loads(line)


def read_run(folder):
    """Returns for each task the mean reward and the count of trained ids, over finished episodes."""
    episodes = {row["rolloutId"]: row for row in lines(Path(folder, "episodes.jsonl"))}
    rewards = defaultdict(list)
    for episode in episodes.values():
        if "reward" in episode:  # Absent if the episode was not scored. That is not a reward of 0.
            rewards[episode["taskId"]].append(episode["reward"])
    trained = defaultdict(list)
    for row in lines(Path(folder, "samples.jsonl")):
        if row["rolloutId"] in episodes:
            mask = row["lossMask"]
            trained[row["taskId"]] += [id for id, counts in zip(row["tokenIds"], mask) if counts]
    return {
        task: {"reward": statistics.mean(rewards[task]), "trained": len(trained[task])}
        for task in rewards
    }

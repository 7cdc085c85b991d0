"""Environments of skyrl-gym. They play rows of the caller's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from ..environments.errors import BadEnvironment
from ..environments.text import Shown, TextEnvironment, TextEpisode
from .explained import explained, unknown_name


class SkyRlGym(TextEnvironment):
    """An environment of skyrl-gym, such as `gsm8k_multi_turn`.

    Args:
        rows: The tasks: `{"question", "answer"}`, or rows of SkyRL's data sets with `prompt` and `reward_spec`.
        file: A JSON Lines file with such rows, in place of `rows`.
        max_turns: The number of turns that an environment with a limit allows.
        env_config: The environment's own settings.
    """

    source = "skyrl-gym"
    packages: Sequence[str] = ("skyrl-gym",)
    repeatable = True

    def __init__(
        self,
        name: str,
        *,
        rows: Sequence[Mapping[str, Any]] = (),
        file: str | None = None,
        max_turns: int = 3,
        env_config: Mapping[str, Any] | None = None,
    ) -> None:
        import skyrl_gym
        from skyrl_gym.envs.registration import registry

        if name not in registry:
            raise unknown_name("skyrl-gym", name, registry)
        self.name = f"skyrl-gym-{name}"
        self.rows = [_to_row(row) for row in (_read(file) if file is not None else rows)]
        if not self.rows:
            example = '{"rows": [{"question": "What is 2+3?", "answer": "5"}]}'
            raise BadEnvironment(f"{name} plays rows of yours: give them, as in --env-args '{example}', or their \"file\"")
        config = dict(env_config or {})
        self.make: Callable[..., Any] = lambda row: skyrl_gym.make(name, env_config=config, extras={"extra_info": {}, "max_turns": max_turns, **row})
        explained(self.name, lambda: self.make(self.rows[0]))

    def tasks(self) -> list[dict[str, Any]]:
        return [{"instruction": row["prompt"][-1]["content"], "index": index} for index, row in enumerate(self.rows)]

    def open(self, task: Any, seed: int) -> TextEpisode:
        row = self.rows[task["index"]]
        return Conversation(self.make(row), row["prompt"])


class Conversation(TextEpisode):
    """An episode. Its reward is the sum of the rewards of its turns."""

    def __init__(self, env: Any, prompt: Any) -> None:
        self.env = env
        self.first, _ = env.init(prompt)
        self.reward = 0.0

    def step(self, text: str) -> tuple[Shown, bool]:
        out = self.env.step(text)
        self.reward += float(out["reward"])
        return out["observations"] or None, bool(out["done"])

    def score(self) -> Any:
        return {"reward": self.reward, "details": self.env.get_metrics()}

    def close(self) -> None:
        self.env.close()


def _to_row(row: Mapping[str, Any]) -> dict[str, Any]:
    if "prompt" in row:
        return dict(row)
    if "question" not in row or "answer" not in row:
        raise BadEnvironment(f'a row has {", ".join(row)}, expected question and answer, or prompt and reward_spec')
    prompt = [{"role": "user", "content": row["question"]}]
    return {"prompt": prompt, "reward_spec": {"method": "rule", "ground_truth": row["answer"]}}


def _read(file: str) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise BadEnvironment(f"the rows of {file} cannot be read ({error}), expected a JSON object a line") from error

"""TRL's GRPOTrainer over `turnwright serve`: ten steps on storefront with the repository's policy.

    pip install trl==1.16.0 transformers==5.24.0 accelerate==1.15.0 datasets==5.2.0 ./integrations/python
    npx turnwright serve --env storefront --user scripted --engine reference --model models/storefront-2m --out runs/trl &
    python integrations/trl/ten_steps.py --model models/storefront-2m --work runs/trl-weights

This is a smoke test, not an experiment: with so few samples the reward has no meaning. It shows that prompts are
tasks, that weights travel by version, and that the recorded logprobs enter the loss. `ratio` is the largest distance of
the step's first ratio from 1, over all trained tokens. `shifted` is the same with the logprobs moved by one token.
"""

import argparse
import json
import os
import pathlib
import shutil
import time

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
from datasets import Dataset
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig

from turnwright.trainers.trl import RecordedGRPOTrainer, env_reward, make_rollout_func

options = argparse.ArgumentParser()
options.add_argument("--model", type=pathlib.Path, required=True)
options.add_argument("--work", type=pathlib.Path, required=True, help="where weights are written, step by step")
options.add_argument("--tasks", default="1,4")
options.add_argument("--samples", type=int, default=4)
options.add_argument("--steps", type=int, default=10)
given = options.parse_args()
tasks = given.tasks.split(",")
began = time.monotonic()


def publish(model) -> str:
    """Writes the weights of a step to a new folder for the engine. Keeps the folder of the step before."""
    step = trainer.state.global_step
    folder = given.work / f"step-{step}"
    if not folder.exists():
        shutil.copytree(given.model, folder)
        # The head is tied to the embedding.
        state = {name: value.detach().float().contiguous().clone() for name, value in model.state_dict().items()
                 if name != "lm_head.weight"}
        save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
        shutil.rmtree(given.work / f"step-{step - 2}", ignore_errors=True)
    return str(folder.resolve())


class Shown(RecordedGRPOTrainer):
    """Prints the data of each step before its update."""

    def _generate_and_score_completions(self, inputs):
        out = super()._generate_and_score_completions(inputs)
        mask = (out["completion_mask"] * out["tool_mask"]).bool()
        ids = torch.cat([out["prompt_ids"], out["completion_ids"]], 1)
        attention = torch.cat([out["prompt_mask"], out["completion_mask"]], 1)
        with torch.no_grad():
            now, *_ = self._get_per_token_logps_and_entropies(self.model, ids, attention, mask.size(1))
        old = out["old_per_token_logps"]
        far = lambda values: ((now - values).exp() - 1)[mask].abs().max().item()
        print(json.dumps({
            "step": self.state.global_step, "trained": int(mask.sum()), "ratio": far(old),
            "shifted": far(old.roll(1, 1)), "advantages": [round(a, 3) for a in out["advantages"].tolist()],
            "seconds": round(time.monotonic() - began, 1)}), flush=True)
        return out


torch.set_num_threads(2)
count = len(tasks) * given.samples
trainer = Shown(
    model=AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32),
    processing_class=AutoTokenizer.from_pretrained(given.model),
    reward_funcs=env_reward, rollout_func=make_rollout_func(publish),
    train_dataset=Dataset.from_dict({"prompt": tasks * given.steps}),
    args=GRPOConfig(output_dir=str(given.work / "trl"), use_cpu=True, bf16=False, gradient_checkpointing=False,
                    per_device_train_batch_size=count, num_generations=given.samples, max_steps=given.steps,
                    learning_rate=2e-4, beta=0.0, temperature=1.0, shuffle_dataset=False, report_to=[],
                    logging_steps=1, save_strategy="no"),
)
trainer.train()

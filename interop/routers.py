"""Computes the experts of each token with transformers, in 64 bits: routers.py

Reads a JSON line {"model": FOLDER, "ids": […]} from standard input for each row, and answers with a line: the experts of each
token in each layer, by weight, and the least difference of weights that decided a token's choice and order.
"""

import functools
import json
import sys

import torch
from transformers import AutoModelForCausalLM


@functools.cache
def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, experts_implementation="eager").eval()


@torch.no_grad()
def route(folder, ids):
    model = load(folder)
    count = model.config.num_experts_per_tok
    logits = model(torch.tensor([ids]), output_router_logits=True).router_logits
    weights, experts = torch.stack([one.softmax(-1) for one in logits], 1).topk(count + 1, dim=-1)
    margins = (weights[..., :-1] - weights[..., 1:]).flatten(1).min(1).values
    return {"experts": experts[..., :count].tolist(), "margins": margins.tolist()}


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(route(asked["model"], asked["ids"])), flush=True)

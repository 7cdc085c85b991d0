"""Scores rows with a small decoder in PyTorch, as a trainer would: with any precision, temperature and routes.

Reads one JSON object from standard input: `model` (a folder), `dtype`, `temperature`, and `rows` with `ids` and, for a
mixture of experts, `routes` [tokens][layers][experts] that replace the routers' choice. Writes `rows` with `logprobs`
(the first is null) and the `routes` that were used. `perturb` adds noise of this relative size to every matrix and
writes the model to the folder `to` instead.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from torch.nn import functional

torch.set_num_threads(1)

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16}


def read_weights(folder):
    data = bytearray(Path(folder, "model.safetensors").read_bytes())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: torch.frombuffer(data, dtype=TYPES[entry["dtype"]], offset=8 + size + entry["data_offsets"][0],
                                   count=torch.Size(entry["shape"]).numel()).view(entry["shape"])
            for name, entry in header.items()}


def perturb(folder, to, size, seed):
    torch.manual_seed(seed)
    shutil.copytree(folder, to, dirs_exist_ok=True)
    weights = {name: tensor.float() * (1 + size * torch.randn(tensor.shape)) if tensor.dim() == 2 else tensor.float()
               for name, tensor in read_weights(folder).items()}
    header, end = {}, 0
    for name, tensor in weights.items():
        start, end = end, end + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    Path(to, "model.safetensors").write_bytes(
        len(text).to_bytes(8, "little") + text + b"".join(tensor.numpy().tobytes() for tensor in weights.values()))


class Decoder:
    def __init__(self, folder, dtype):
        self.config = json.loads(Path(folder, "config.json").read_text())
        self.weights = {name: tensor.to(dtype) for name, tensor in read_weights(folder).items()}
        self.dtype = dtype

    def norm(self, states, name):
        wide = states.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.config.get("rms_norm_eps", 1e-6))
        return wide.to(self.dtype) * self.weights[name]

    def rotate(self, states):
        config = self.config
        theta = config.get("rope_theta") or config.get("rope_parameters", {}).get("rope_theta") or 10000.0
        half = states.shape[-1] // 2
        angles = torch.arange(states.shape[0])[:, None] / theta ** (torch.arange(half) / half)
        cos, sin = (each.repeat(1, 2)[:, None].to(self.dtype) for each in (angles.cos(), angles.sin()))
        return states * cos + torch.cat([-states[..., half:], states[..., :half]], -1) * sin

    def attend(self, states, prefix):
        config, count = self.config, states.shape[0]
        heads = {}
        for name, number in (("q", "num_attention_heads"), ("k", "num_key_value_heads"), ("v", "num_key_value_heads")):
            heads[name] = (states @ self.weights[f"{prefix}.{name}_proj.weight"].T).view(count, config[number], -1)
            if f"{prefix}.{name}_norm.weight" in self.weights:
                heads[name] = self.norm(heads[name], f"{prefix}.{name}_norm.weight")
        query, key = (self.rotate(heads[name]).transpose(0, 1)[None] for name in "qk")
        out = functional.scaled_dot_product_attention(query, key, heads["v"].transpose(0, 1)[None], is_causal=True,
                                                      enable_gqa=True)
        return out[0].transpose(0, 1).reshape(count, -1) @ self.weights[f"{prefix}.o_proj.weight"].T

    def feed(self, states, prefix):
        gate, up, down = (self.weights[f"{prefix}.{name}_proj.weight"] for name in ("gate", "up", "down"))
        return (functional.silu(states @ gate.T) * (states @ up.T)) @ down.T

    def mix(self, states, prefix, routes):
        """Returns the experts' sum, and the experts in the order of their weight."""
        chances = (states @ self.weights[f"{prefix}.gate.weight"].T).float().softmax(-1)
        chosen = chances.topk(self.config["num_experts_per_tok"]).indices if routes is None else routes
        shares = chances.gather(-1, chosen)
        if self.config.get("norm_topk_prob"):
            shares = shares / shares.sum(-1, keepdim=True)
        out = torch.zeros_like(states)
        for expert in chosen.unique().tolist():
            rows, places = (chosen == expert).nonzero(as_tuple=True)
            fed = self.feed(states[rows], f"{prefix}.experts.{expert}")
            out.index_add_(0, rows, fed * shares[rows, places, None].to(self.dtype))
        return out, chosen

    def score(self, ids, temperature, routes=None):
        ids = torch.tensor(ids)
        if routes is not None:
            routes = torch.tensor(routes, dtype=torch.int64)
        states = self.weights["model.embed_tokens.weight"][ids]
        used = []
        for layer in range(self.config["num_hidden_layers"]):
            prefix = f"model.layers.{layer}"
            states = states + self.attend(self.norm(states, f"{prefix}.input_layernorm.weight"), f"{prefix}.self_attn")
            inner = self.norm(states, f"{prefix}.post_attention_layernorm.weight")
            if f"{prefix}.mlp.gate.weight" in self.weights:
                fed, chosen = self.mix(inner, f"{prefix}.mlp", None if routes is None else routes[:, layer])
            else:
                fed = self.feed(inner, f"{prefix}.mlp")
                chosen = torch.zeros(len(ids), self.config.get("num_experts_per_tok", 0), dtype=torch.int64)
            states = states + fed
            used.append(chosen)
        head = self.weights.get("lm_head.weight", self.weights["model.embed_tokens.weight"])
        logits = (self.norm(states, "model.norm.weight") @ head.T).float() / temperature
        logprobs = logits[:-1].log_softmax(-1).gather(-1, ids[1:, None])[:, 0]
        return {"logprobs": [None, *logprobs.tolist()], "routes": torch.stack(used, 1).tolist()}


def main():
    given = json.load(sys.stdin)
    if "perturb" in given:
        perturb(given["model"], given["to"], given["perturb"], given["seed"])
        return
    decoder = Decoder(given["model"], getattr(torch, given["dtype"]))
    with torch.no_grad():
        rows = [decoder.score(row["ids"], given["temperature"], row.get("routes")) for row in given["rows"]]
    json.dump({"rows": rows}, sys.stdout)


main()

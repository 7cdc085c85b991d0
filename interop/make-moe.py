"""Writes a tiny mixture of experts with random weights: make-moe.py TOKENIZER_FOLDER OUT SEED

The tokenizer and the template are those of the folder. Routers have wide weights, so that few choices are near ties, which two
orders of additions would decide differently.
"""

import json
import pathlib
import shutil
import sys

import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

tokenizer, out, seed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
base = json.loads((tokenizer / "config.json").read_text())
config = Qwen3MoeConfig(
    vocab_size=base["vocab_size"], hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    intermediate_size=128, moe_intermediate_size=64, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True, decoder_sparse_step=1,
    max_position_embeddings=4096, tie_word_embeddings=False, eos_token_id=base["eos_token_id"], bos_token_id=None, rope_theta=1e6)
torch.manual_seed(seed)
model = Qwen3MoeForCausalLM(config).float()
with torch.no_grad():
    for name, weights in model.named_parameters():
        if weights.ndim == 1:
            continue
        spread = 0.5 if name.endswith("mlp.gate.weight") else 1.0 if "embed_tokens" in name else weights.shape[-1] ** -0.5
        weights.normal_(0, spread)
out.mkdir(parents=True)
model.save_pretrained(out)
for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
    shutil.copy(tokenizer / name, out)

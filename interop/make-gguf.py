"""Writes a Llama-type model folder with a byte-level BPE tokenizer as a GGUF file in 32 bits.

python make-gguf.py MODEL_DIR FILE     (needs gguf and numpy)
"""

import json
import struct
import sys
from pathlib import Path

import gguf
import numpy as np

folder, file = Path(sys.argv[1]), sys.argv[2]
config = json.loads((folder / "config.json").read_text())
tokenizer = json.loads((folder / "tokenizer.json").read_text())
template = json.loads((folder / "tokenizer_config.json").read_text()).get("chat_template")
blob = (folder / "model.safetensors").read_bytes()
(header_length,) = struct.unpack("<Q", blob[:8])
header = json.loads(blob[8 : 8 + header_length])
body = memoryview(blob)[8 + header_length :]


def tensor(name):
    entry = header[name]
    start, end = entry["data_offsets"]
    if entry["dtype"] == "BF16":
        bits = np.frombuffer(body[start:end], np.uint16).astype(np.uint32) << 16
        values = bits.view(np.float32)
    else:
        types = {"F32": np.float32, "F16": np.float16}
        values = np.frombuffer(body[start:end], types[entry["dtype"]]).astype(np.float32)
    return values.reshape(entry["shape"])


def interleave(weight, head_count):
    """Reorders each head from halves, as transformers rotates them, to pairs, as llama.cpp does."""
    pairs = weight.reshape(head_count, 2, -1, weight.shape[1]).swapaxes(1, 2)
    return np.ascontiguousarray(pairs.reshape(weight.shape))


heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
writer = gguf.GGUFWriter(file, "llama")
writer.add_name("storefront-2m")
writer.add_file_type(gguf.LlamaFileType.ALL_F32)
writer.add_vocab_size(config["vocab_size"])
writer.add_context_length(config["max_position_embeddings"])
writer.add_embedding_length(config["hidden_size"])
writer.add_block_count(config["num_hidden_layers"])
writer.add_feed_forward_length(config["intermediate_size"])
writer.add_head_count(heads)
writer.add_head_count_kv(kv_heads)
for add in (writer.add_key_length, writer.add_value_length, writer.add_rope_dimension_count):
    add(config["head_dim"])
writer.add_rope_freq_base(config["rope_theta"])
writer.add_layer_norm_rms_eps(config["rms_norm_eps"])

tokens = {index: (text, gguf.TokenType.NORMAL) for text, index in tokenizer["model"]["vocab"].items()}
for added in tokenizer["added_tokens"]:
    kind = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    tokens[added["id"]] = (added["content"], kind)
unused = [(f"[PAD{index}]", gguf.TokenType.UNUSED) for index in range(config["vocab_size"])]
rows = [tokens.get(index, row) for index, row in enumerate(unused)]
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("qwen2")
writer.add_token_list([text for text, _ in rows])
writer.add_token_types([kind for _, kind in rows])
merges = tokenizer["model"]["merges"]
writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
writer.add_eos_token_id(config["eos_token_id"])
writer.add_pad_token_id(config["pad_token_id"])
writer.add_add_bos_token(False)
if template:
    writer.add_chat_template(template)

writer.add_tensor("token_embd.weight", tensor("model.embed_tokens.weight"))
writer.add_tensor("output_norm.weight", tensor("model.norm.weight"))
if "lm_head.weight" in header:
    writer.add_tensor("output.weight", tensor("lm_head.weight"))
PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
for layer in range(config["num_hidden_layers"]):
    for part, source in PARTS.items():
        weight = tensor(f"model.layers.{layer}.{source}.weight")
        if part == "attn_q":
            weight = interleave(weight, heads)
        if part == "attn_k":
            weight = interleave(weight, kv_heads)
        writer.add_tensor(f"blk.{layer}.{part}.weight", weight)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

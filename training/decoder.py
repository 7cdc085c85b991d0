"""A Llama-type decoder, written to train fast on one processor core.

What all sequences of a batch start with is computed once; the projections of a layer that read the
same input are one matrix each and are taken apart when the weights are saved.
"""

import json

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 128,
    "initializer_range": 0.02,
    "intermediate_size": 384,
    "max_position_embeddings": 4096,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 4,
    "num_hidden_layers": 5,
    "num_key_value_heads": 2,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
}


class RmsNorm(torch.autograd.Function):
    """Root-mean-square norm with its gradient in few passes over memory."""

    @staticmethod
    def forward(ctx, x, weight, epsilon):
        mean = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().mul_(1 / x.shape[-1])
        scale = mean.add_(epsilon).rsqrt_()
        normal = x * scale
        ctx.save_for_backward(normal, weight, scale)
        return normal * weight

    @staticmethod
    def backward(ctx, gradient):
        normal, weight, scale = ctx.saved_tensors
        weight_gradient = (gradient * normal).sum(0)
        gradient = gradient * weight
        along = torch.linalg.vecdot(gradient, normal).mul_(1 / normal.shape[-1]).unsqueeze(-1)
        return torch.addcmul(gradient, normal, along, value=-1).mul_(scale), weight_gradient, None


def rotate(x, cos, sin):
    """Rotary position embedding, halves paired. x: [..., length, heads, head_dim]."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        size, inner = config["hidden_size"], config["intermediate_size"]
        self.head_dim, self.heads = config["head_dim"], config["num_attention_heads"]
        self.kv_heads, self.epsilon = config["num_key_value_heads"], config["rms_norm_eps"]
        self.input_norm = nn.Parameter(torch.ones(size))
        self.mlp_norm = nn.Parameter(torch.ones(size))
        self.qkv = nn.Linear(size, (self.heads + 2 * self.kv_heads) * self.head_dim, bias=False)
        self.out = nn.Linear(self.heads * self.head_dim, size, bias=False)
        self.gate_up = nn.Linear(size, 2 * inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)
        # Every layer starts as the identity: what a token is must reach the layers that copy it.
        nn.init.normal_(self.qkv.weight, std=size**-0.5)
        nn.init.normal_(self.gate_up.weight, std=size**-0.5)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.down.weight)

    def forward(self, x, shape, rope):
        """x: [prefix + batch * length, hidden], the prefix once and then every row."""
        x = x + self.out(self.attend(RmsNorm.apply(x, self.input_norm, self.epsilon), shape, rope))
        gate, up = self.gate_up(RmsNorm.apply(x, self.mlp_norm, self.epsilon)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)

    def attend(self, x, shape, rope):
        prefix, batch, length = shape
        qkv = self.qkv(x)
        q, k, v = self.split(qkv[prefix:].view(batch, length, -1, self.head_dim), rope, prefix)
        if prefix == 0:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return mixed.transpose(1, 2).reshape(batch * length, -1)
        first_q, first_k, first_v = self.split(
            qkv[:prefix].view(1, prefix, -1, self.head_dim), rope, 0
        )
        first = F.scaled_dot_product_attention(first_q, first_k, first_v, is_causal=True)
        k = torch.cat([first_k.expand(batch, -1, -1, -1), k], dim=2)
        v = torch.cat([first_v.expand(batch, -1, -1, -1), v], dim=2)
        mask = torch.ones(length, prefix + length, dtype=torch.bool, device=x.device).tril(prefix)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return torch.cat([y.transpose(1, 2).reshape(-1, self.heads * self.head_dim)
                          for y in (first, mixed)])

    def split(self, qkv, rope, start):
        """Queries, keys and values as [batch, heads, length, head_dim], positions applied."""
        cos, sin = (table[start : start + qkv.shape[1], None].to(qkv.dtype) for table in rope)
        turned = rotate(qkv[:, :, : self.heads + self.kv_heads], cos, sin)
        q, k = turned[:, :, : self.heads], turned[:, :, self.heads :]
        v = qkv[:, :, self.heads + self.kv_heads :]
        repeats = self.heads // self.kv_heads
        return (q.transpose(1, 2), k.transpose(1, 2).repeat_interleave(repeats, dim=1),
                v.transpose(1, 2).repeat_interleave(repeats, dim=1))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config["vocab_size"], config["hidden_size"])
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.Parameter(torch.ones(config["hidden_size"]))
        half = config["head_dim"] // 2
        frequencies = config["rope_theta"] ** (-torch.arange(half).float() / half)
        angles = torch.arange(config["max_position_embeddings"]).float()[:, None] * frequencies
        self.rope = angles.cos(), angles.sin()

    def _apply(self, fn, recurse=True):
        """Takes the angles along to wherever the weights go."""
        self.rope = tuple(table.to(fn(table).device) for table in self.rope)
        return super()._apply(fn, recurse)

    def forward(self, prefix, rows):
        """Hidden states [batch * length, hidden] of rows [batch, length] that follow a prefix."""
        shape = len(prefix), *rows.shape
        x = self.embedding(torch.cat([prefix, rows.reshape(-1)]))
        for layer in self.layers:
            x = layer(x, shape, self.rope)
        return RmsNorm.apply(x[len(prefix) :], self.norm, self.config["rms_norm_eps"])

    def logits(self, hidden):
        return F.linear(hidden, self.embedding.weight)

    @staticmethod
    def from_hugging_face(folder):
        """The model of a folder that `to_hugging_face()` went into, in 32 bits: as inference computes."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = {name: w.float() for name, w in load_file(folder / "model.safetensors").items()}
        model = Decoder(config)
        model.embedding.weight.data = weights["model.embed_tokens.weight"]
        model.norm.data = weights["model.norm.weight"]
        for index, layer in enumerate(model.layers):
            part = {name.split(f"layers.{index}.")[1].removesuffix(".weight"): w
                    for name, w in weights.items() if name.startswith(f"model.layers.{index}.")}
            layer.input_norm.data = part["input_layernorm"]
            layer.mlp_norm.data = part["post_attention_layernorm"]
            layer.qkv.weight.data = torch.cat([part[f"self_attn.{x}_proj"] for x in "qkv"])
            layer.out.weight.data = part["self_attn.o_proj"]
            layer.gate_up.weight.data = torch.cat([part["mlp.gate_proj"], part["mlp.up_proj"]])
            layer.down.weight.data = part["mlp.down_proj"]
        # The angles rounded as inference rounds them: attention that copies is sharp enough for their
        # last bit to move a logprob by 1e-3.
        half = torch.arange(0, config["head_dim"], 2).float() / config["head_dim"]
        frequencies = 1.0 / config["rope_theta"] ** half
        angles = torch.arange(config["max_position_embeddings"]).float()[:, None] * frequencies
        model.rope = angles.cos(), angles.sin()
        return model

    def to_hugging_face(self):
        """The weights under the names that `LlamaForCausalLM` reads."""
        config = self.config
        q, kv = (config[name] * config["head_dim"]
                 for name in ("num_attention_heads", "num_key_value_heads"))
        weights = {"model.embed_tokens.weight": self.embedding.weight, "model.norm.weight": self.norm}
        for index, layer in enumerate(self.layers):
            parts = {
                "input_layernorm": layer.input_norm,
                "post_attention_layernorm": layer.mlp_norm,
                "self_attn.o_proj": layer.out.weight,
                "mlp.down_proj": layer.down.weight,
            }
            names = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
            parts |= zip(names, layer.qkv.weight.split([q, kv, kv]))
            parts |= zip(("mlp.gate_proj", "mlp.up_proj"), layer.gate_up.weight.chunk(2))
            weights |= {f"model.layers.{index}.{name}.weight": part for name, part in parts.items()}
        return {name: weight.detach() for name, weight in weights.items()}

"""Records what PyTorch and transformers make of small decoders, for golden.json.

    pip install torch transformers && python make-golden.py > golden.json

The weights are those that writeRandomModel() in src/engine/reference/random-model.ts writes: functions
of seed, tensor name and place, exact to the bit, so that no weights need to be kept.
"""

import json
import sys

import numpy
import torch
import transformers

BASE = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}

CASES = [
    {
        "name": "Llama, untied, as many heads of keys as of queries",
        "config": {
            **BASE,
            "architectures": ["LlamaForCausalLM"],
            "num_key_value_heads": 4,
            "rope_theta": 10000.0,
        },
        "seed": 1,
    },
    {
        "name": "Llama with llama3 angles",
        "config": {
            **BASE,
            "architectures": ["LlamaForCausalLM"],
            "head_dim": 16,
            "rope_theta": 500.0,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
        "seed": 2,
    },
    {
        "name": "Llama with linear angles",
        "config": {
            **BASE,
            "architectures": ["LlamaForCausalLM"],
            "rope_theta": 10000.0,
            "rope_scaling": {"type": "linear", "factor": 4.0},
        },
        "seed": 3,
    },
    {
        "name": "Qwen2, tied, with biases",
        "config": {
            **BASE,
            "architectures": ["Qwen2ForCausalLM"],
            "tie_word_embeddings": True,
            "rope_theta": 1000000.0,
            "use_sliding_window": False,
        },
        "seed": 4,
    },
    {
        "name": "Qwen3, tied, one head of keys, heads wider than the hidden size says",
        "config": {
            **BASE,
            "architectures": ["Qwen3ForCausalLM"],
            "num_key_value_heads": 1,
            "head_dim": 24,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        "seed": 5,
    },
]

MIXTURE = {
    **BASE,
    "architectures": ["Qwen3MoeForCausalLM"],
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "moe_intermediate_size": 24,
}

MIXTURE_CASES = [
    {
        "name": "Qwen3-MoE, a dense layer before two with experts, weights divided by their sum",
        "config": {
            **MIXTURE,
            "num_hidden_layers": 3,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "norm_topk_prob": True,
            "mlp_only_layers": [0],
        },
        "seed": 6,
    },
    {
        "name": "Qwen3-MoE, experts in every second layer, weights as they are",
        "config": {
            **MIXTURE,
            "num_hidden_layers": 4,
            "num_experts": 5,
            "num_experts_per_tok": 3,
            "norm_topk_prob": False,
            "decoder_sparse_step": 2,
        },
        "seed": 7,
    },
    {
        "name": "Qwen3-MoE, tied, 300 experts",
        "config": {
            **MIXTURE,
            "num_hidden_layers": 1,
            "moe_intermediate_size": 8,
            "num_experts": 300,
            "num_experts_per_tok": 4,
            "norm_topk_prob": True,
            "tie_word_embeddings": True,
        },
        "seed": 8,
    },
]

TEMPERATURES = [1.0, 0.7]

# Two orders of adding floats may not decide which expert comes first.
SMALLEST_MARGIN = 5e-6


def mix(value):
    """MurmurHash3's fmix32 of an array of 32-bit numbers."""
    state = value.astype(numpy.uint32)
    state = (state ^ (state >> numpy.uint32(16))) * numpy.uint32(0x85EBCA6B)
    state = (state ^ (state >> numpy.uint32(13))) * numpy.uint32(0xC2B2AE35)
    return state ^ (state >> numpy.uint32(16))


def random_tensor(name, shape, seed):
    state = numpy.array([seed], dtype=numpy.uint32)
    for character in name:
        state = mix(state * numpy.uint32(31) + numpy.uint32(ord(character)))
    index = numpy.arange(int(numpy.prod(shape)), dtype=numpy.uint32)
    bits = mix(state + index * numpy.uint32(0x9E3779B9))
    centered = (bits >> numpy.uint32(8)).astype(numpy.float64) / 2**23 - 1
    scale = numpy.sqrt(12 / shape[1]) if len(shape) == 2 else 0.25
    start = 1.0 if name.endswith("norm.weight") else 0.0
    return torch.from_numpy((start + scale * centered).astype(numpy.float32).reshape(shape))


def weights_of(name, shape, seed):
    """The weights of a parameter. Those of experts are one tensor in memory, and one an expert in files."""
    if ".experts." not in name:
        return random_tensor(name, shape, seed)
    prefix, _, stacked = name.rpartition(".")
    parts = {"gate_up_proj": ["gate_proj", "up_proj"], "down_proj": ["down_proj"]}[stacked]
    part_shape = (shape[1] // len(parts), shape[2])
    return torch.stack(
        [
            torch.cat(
                [
                    random_tensor(f"{prefix}.{expert}.{part}.weight", part_shape, seed)
                    for part in parts
                ]
            )
            for expert in range(shape[0])
        ]
    )


def build_model(config, seed):
    architecture = config["architectures"][0]
    config_class = getattr(transformers, architecture.replace("ForCausalLM", "Config"))
    model_config = config_class(**config)
    model_config._attn_implementation = "eager"
    model_config._experts_implementation = "eager"
    model = getattr(transformers, architecture)(model_config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights_of(name, parameter.shape, seed))
    model.tie_weights()
    return model


def score(config, seed, ids, temperature):
    """Logprobs of ids[1:], each given the ids before it."""
    model = build_model(config, seed)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].float()
    logprobs = torch.log_softmax(logits / temperature, dim=-1)
    return [float(logprobs[index, following]) for index, following in enumerate(ids[1:])]


def find_routes(config, seed, ids):
    """The experts of each token and layer, the largest weight first, zeros in dense layers."""
    model = build_model(config, seed)
    count = config["num_experts_per_tok"]
    layers = [[[0] * count for _ in ids] for _ in range(config["num_hidden_layers"])]
    with torch.no_grad():
        for index, layer in enumerate(model.model.layers):
            if not hasattr(layer.mlp, "gate"):
                continue

            def keep(router, inputs, outputs, index=index):
                probabilities = torch.softmax(outputs[0], dim=-1, dtype=torch.float32)
                best = torch.topk(probabilities, count + 1, dim=-1).values
                margin = float((best[:, :-1] - best[:, 1:]).min())
                assert margin > SMALLEST_MARGIN, f"layer {index} has a near tie: {margin}"
                layers[index] = outputs[2].tolist()

            layer.mlp.gate.register_forward_hook(keep)
        model(torch.tensor([ids]))
    return [list(token) for token in zip(*layers, strict=True)]


def case_ids(vocab_size, seed, length):
    bits = mix(numpy.arange(length, dtype=numpy.uint32) + numpy.uint32(seed * 1000))
    return [int(value) for value in bits % numpy.uint32(vocab_size)]


def main():
    cases = []
    for case in CASES + MIXTURE_CASES:
        ids = case_ids(case["config"]["vocab_size"], case["seed"], 75)
        logprobs = {
            str(temperature): [
                float(f"{value:.7g}")
                for value in score(case["config"], case["seed"], ids, temperature)
            ]
            for temperature in TEMPERATURES
        }
        routes = {}
        if "num_experts" in case["config"]:
            routes["routes"] = find_routes(case["config"], case["seed"], ids)
        cases.append({**case, "ids": ids, "logprobs": logprobs, **routes})
    recorded_with = {"torch": torch.__version__, "transformers": transformers.__version__}
    # One line a case.
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    sys.stdout.write(f'{{"recordedWith":{json.dumps(recorded_with)},"cases":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()

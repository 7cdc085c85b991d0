"""Starts a decoder with heads that copy, instead of waiting for them to form.

Copying what was said before takes two layers: in the first, a position takes note of the token
before it; in a later one, a position looks for places whose noted token is its own token and takes
over what stands there. Gradient descent finds this by itself, but late. Training is free to change
all of it.
"""

import torch

# How strongly the first layer prefers the nearest tokens, and how strongly equal tokens match.
NEARNESS = 9.0
MATCH = 3.5
# How much of a token's direction enters the residual stream when it is noted by the first layer,
# copied by the heads that compare, and passed on by all others.
NOTED = 0.1
COPIED = 0.4
PASSED_ON = 0.1
# Only pairs of dimensions that rotate slower than this (radians a token) compare tokens.
SLOW = 2e-3


@torch.no_grad()
def seed_copying(model):
    config = model.config
    size, head = config["hidden_size"], config["head_dim"]
    half = head // 2
    frequencies = config["rope_theta"] ** (-torch.arange(half).float() / half)

    # One dimension is the same for every token: heads that look at positions alone read it.
    embedding = model.embedding.weight
    embedding.mul_(0.1 / embedding.std())
    embedding[:, 0] = 0.3
    constant = 0.3 / embedding.square().mean().sqrt()

    def basis(count):
        matrix = torch.linalg.qr(torch.randn(size, count))[0].T
        matrix[:, 0] = 0
        return matrix

    code = basis(head)
    notes = [basis(head), basis(head)]

    first = parts(model.layers[0], config)
    for index, note in enumerate(notes):
        # Query head `index` looks at the token `index + 1` places back.
        turn = frequencies * (index + 1)
        near = NEARNESS * (frequencies > 0.03)
        first["q"][index].zero_()
        first["q"][index][:half, 0] = near * turn.cos() / constant
        first["q"][index][half:, 0] = -near * turn.sin() / constant
        first["o"][index].copy_(NOTED * note.T)
    first["k"][0].zero_()
    first["k"][0][:half, 0] = NEARNESS * (frequencies > 0.03) / constant
    first["v"][0].copy_(code)

    # From the second layer on, every head passes on what it looks at: two halves make the whole.
    whole = torch.linalg.qr(torch.randn(size, size))[0]
    for layer in model.layers[1:]:
        heads = parts(layer, config)
        group = len(heads["q"]) // len(heads["v"])
        for index, out in enumerate(heads["o"]):
            taken = whole[index // group * head :][:head]
            heads["v"][index // group].copy_(taken)
            out.copy_(PASSED_ON * taken.T)

    # In the second layer, the first head of each half compares its token with the noted ones.
    slow = torch.cat([frequencies < SLOW, frequencies < SLOW])[:, None]
    second = parts(model.layers[1], config)
    group = len(second["q"]) // len(second["k"])
    for index in range(0, len(second["q"]), group):
        second["q"][index].copy_(MATCH * code * slow)
        second["k"][index // group].copy_(MATCH * notes[0] * slow)
        second["o"][index].mul_(COPIED / PASSED_ON)


def parts(layer, config):
    """Views of a layer's attention by head."""
    head, kv = config["head_dim"], config["num_key_value_heads"]
    q, k, v = layer.qkv.weight.split([config["num_attention_heads"] * head, kv * head, kv * head])
    return {
        "q": q.split(head),
        "k": k.split(head),
        "v": v.split(head),
        "o": layer.out.weight.split(head, dim=1),
    }

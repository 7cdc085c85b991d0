"""Trains the storefront policy from scratch and writes it as a Hugging Face folder.

    python training/train.py --conversations FILE --out DIR [--steps N] [--seed N] [--device cuda]

See training/README.md for the whole way.
"""

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from decoder import CONFIG, Decoder
from initial import seed_copying
from vocabulary import build_tokenizer

HELD_OUT_COUNT = 96
# The share of the way from which every conversation has its beginning, and how often before that.
PREFIX_FROM = 0.75
PREFIX_EVERY = 8
# The share of the way during which short stretches are read, where copying is learned fast.
CROPPED_UNTIL = 0.1
# The share of random strings among them: every token must be one that can be copied.
COPY_SHARE = 0.25
CROP_LENGTH = 112


def read_conversations(path, limit):
    with open(path, encoding="utf-8") as lines:
        prefix = json.loads(next(lines))["prefix"]
        return prefix, [json.loads(line) for _, line in zip(range(limit), lines)]


def encode_conversations(tokenizer, conversations):
    """Ids, trained flags and where pieces start; pieces are encoded one by one, as rollouts do."""
    pieces = [piece for one in conversations for piece in one["pieces"]]
    encodings = tokenizer.encode_batch([text for text, _ in pieces])
    rows, place = [], 0
    for one in conversations:
        ids, trained, starts = [], [], []
        for _, is_trained in one["pieces"]:
            starts.append(len(ids))
            ids += encodings[place].ids
            trained += [is_trained] * len(encodings[place].ids)
            place += 1
        rows.append((ids, trained, starts))
    return rows


def crop(row, length, order):
    """A stretch of a conversation that starts with something to read."""
    ids, trained, starts = row
    start = order.choice(starts[::2])
    return ids[start : start + length], trained[start : start + length]


def draw_copies(vocabulary_size, length, order):
    """Random strings of tokens that come again and again; trained is what can be known."""
    chunks, ids, trained = [], [], []
    while len(ids) < length:
        if chunks and order.random() < 0.6:
            chunk = order.choice(chunks)
            trained += [None] + [1] * (len(chunk) - 1)
        else:
            chunk = [order.randrange(vocabulary_size) for _ in range(order.randint(3, 7))]
            chunks.append(chunk)
            trained += [None] * len(chunk)
        ids += chunk
    return ids[:length], trained[:length]


def make_batches(rows, token_count, order):
    """Batches of rows of like length, in random order."""
    ranked = sorted(range(len(rows)), key=lambda index: (len(rows[index][0]) // 16, order.random()))
    batches, batch = [], []
    for index in ranked:
        if (len(batch) + 1) * len(rows[index][0]) > token_count and batch:
            batches.append(batch)
            batch = []
        batch.append(index)
    batches.append(batch)
    order.shuffle(batches)
    return batches


FLAGS = {1: 1, 0: 2, None: 0}


def collate(rows):
    """Padded ids, and flags: 1 where trained, 2 where only read, 0 where padded or unknowable."""
    length = max(len(row[0]) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    trained = torch.zeros(len(rows), length, dtype=torch.long)
    for place, (row_ids, row_trained, *_) in enumerate(rows):
        ids[place, : len(row_ids)] = torch.tensor(row_ids)
        trained[place, : len(row_ids)] = torch.tensor([FLAGS[flag] for flag in row_trained])
    return ids, trained


def loss_of(model, prefix, ids, trained, context_weight):
    """Mean loss of the trained tokens, plus that of the rest by its weight."""
    hidden = model(prefix, ids)
    targets, flags = ids.roll(-1, 1).flatten(), trained.roll(-1, 1)
    flags[:, -1] = 0
    flags = flags.flatten()
    wanted = flags > 0 if context_weight > 0 else flags == 1
    losses = F.cross_entropy(model.logits(hidden[wanted]).float(), targets[wanted], reduction="none")
    is_trained = flags[wanted] == 1
    loss = losses[is_trained].mean()
    if context_weight > 0:
        loss = loss + context_weight * losses[~is_trained].mean()
    return loss


@torch.no_grad()
def evaluate(model, prefix, rows, tokenizer):
    """Loss of trained tokens, and the share of tool calls of which every token is the likeliest."""
    call_id = tokenizer.token_to_id("<tool_call>")
    losses, right, counts = [], Counter(), Counter()
    for start in range(0, len(rows), 16):
        ids, trained = (one.to(prefix.device) for one in collate(rows[start : start + 16]))
        logits = model.logits(model(prefix, ids)).float().view(*ids.shape, -1)[:, :-1]
        targets, flags = ids[:, 1:], trained[:, 1:]
        losses.append(F.cross_entropy(logits[flags == 1], targets[flags == 1], reduction="none"))
        hits = logits.argmax(-1) == targets
        for row in range(len(ids)):
            starts = ((targets[row] == call_id) & (flags[row] == 1)).nonzero().flatten().tolist()
            for begin in starts:
                end = begin
                while end < flags.shape[1] and flags[row, end] == 1:
                    end += 1
                name = tokenizer.decode(targets[row, begin + 3 : begin + 6].tolist())
                counts[name] += 1
                right[name] += bool(hits[row, begin:end].all())
    print({name: f"{right[name]}/{count}" for name, count in counts.items()})
    return torch.cat(losses).mean().item(), right.total() / counts.total()


def make_optimizers(model, rate):
    matrices = [p for name, p in model.named_parameters() if p.dim() == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.dim() != 2 or "embed" in name]
    return [
        torch.optim.Muon(matrices, lr=rate, momentum=0.95, weight_decay=0.01,
                         adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def export(model, tokenizer, out):
    out.mkdir(parents=True, exist_ok=True)
    end, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    config = {**model.config, "bos_token_id": None, "eos_token_id": end, "pad_token_id": pad}
    generation = {"do_sample": True, "eos_token_id": [end, pad], "pad_token_id": pad,
                  "temperature": 1.0, "top_k": 0, "top_p": 1.0}
    template = (Path(__file__).parent / "chat-template.jinja").read_text(encoding="utf-8")
    decoder = {
        str(id): {"content": token.content, "lstrip": False, "normalized": False, "rstrip": False,
                  "single_word": False, "special": token.special}
        for id, token in tokenizer.get_added_tokens_decoder().items()
    }
    tokenizer_config = {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": decoder,
        "bos_token": None, "chat_template": template, "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>", "errors": "replace",
        "model_max_length": config["max_position_embeddings"], "pad_token": "<|endoftext|>",
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None,
    }
    for name, content in [("config", config), ("generation_config", generation),
                          ("tokenizer_config", tokenizer_config)]:
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
        (out / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    tensors = {name: weight.to("cpu", torch.bfloat16).contiguous()
               for name, weight in model.to_hugging_face().items()}
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--batch-tokens", type=int, default=2240)
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--context-weight", type=float, default=0.2)
    parser.add_argument("--vocabulary-size", type=int, default=2944)
    parser.add_argument("--limit", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--set", nargs="*", default=[], help="overrides, such as hidden_size=128")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    order = random.Random(options.seed)

    prefix_text, conversations = read_conversations(options.conversations, options.limit)
    sample = conversations[:4000]
    texts = [prefix_text] * 100 + [text for one in sample for text, _ in one["pieces"]]
    tokenizer = build_tokenizer(texts, options.vocabulary_size)
    prefix = torch.tensor(tokenizer.encode(prefix_text).ids, device=options.device)
    rows = encode_conversations(tokenizer, conversations)
    held_out, rows = rows[:HELD_OUT_COUNT], rows[HELD_OUT_COUNT:]
    overrides = {key: int(value) for key, value in (item.split("=") for item in options.set)}
    config = {**CONFIG, **overrides, "vocab_size": tokenizer.get_vocab_size()}
    model = Decoder(config)
    seed_copying(model)
    model = model.to(options.device)
    size = sum(parameter.numel() for parameter in model.parameters())
    print(f"{size:,} parameters, vocabulary {config['vocab_size']}, prefix {len(prefix)} tokens, "
          f"{len(rows)} conversations of {sum(len(ids) for ids, _, _ in rows) / len(rows):.0f} tokens, "
          f"{sum(sum(flags) for _, flags, _ in rows) / len(rows):.0f} trained", flush=True)

    optimizers = make_optimizers(model, options.rate)
    batches, started, seen, recent = [], time.time(), 0, []
    for step in range(options.steps):
        done = step / options.steps
        if not batches and done >= CROPPED_UNTIL:
            batches = make_batches(rows, options.batch_tokens, order)
        rate = options.rate * min(1, (step + 1) / 100, (1 - done) / 0.4)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
        # Most of the way the conversations stand alone, which takes half the time; what they start
        # with is always the same, and the model only has to get used to its being there.
        if done < CROPPED_UNTIL:
            has_prefix = False
            batch = [draw_copies(config["vocab_size"], CROP_LENGTH, order)
                     if order.random() < COPY_SHARE else crop(row, CROP_LENGTH, order)
                     for row in order.sample(rows, options.batch_tokens // CROP_LENGTH)]
        else:
            has_prefix = done >= PREFIX_FROM or step % PREFIX_EVERY == 0
            batch = [rows[index] for index in batches.pop()]
        ids, trained = (one.to(options.device) for one in collate(batch))
        with torch.autocast(options.device, dtype=torch.bfloat16):
            loss = loss_of(model, prefix if has_prefix else prefix[:0], ids, trained,
                           options.context_weight)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        seen += ids.numel()
        recent.append(loss.detach())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {torch.stack(recent).mean():.4f} "
                  f"{seen / (time.time() - started):.0f} tokens/s", flush=True)
            recent = []
        if (step + 1) % 250 == 0 or step + 1 == options.steps:
            with torch.autocast(options.device, dtype=torch.bfloat16):
                held_out_loss, accuracy = evaluate(
                    model, prefix if has_prefix else prefix[:0], held_out, tokenizer)
            print(f"step {step + 1} held-out loss {held_out_loss:.4f} calls right {accuracy:.3f} "
                  f"after {(time.time() - started) / 60:.1f} min", flush=True)
            export(model, tokenizer, options.out)


if __name__ == "__main__":
    main()

"""Goes on from a trained policy with the one turn that it never learned, and writes the outcome.

    python training/go_on.py --from DIR --conversations FILE --out DIR [--steps N] [--seed N]

That is the look at another order than the first of those that were listed. See training/README.md.
"""

import argparse
import random
import re
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from decoder import Decoder, RmsNorm
from train import encode_conversations, export, make_batches, make_optimizers, read_conversations

HELD_OUT_COUNT = 96
# What a token counts: the number that the turn has to find, others of the expert's, and what is only read;
# in whole conversations and in drills, where all but that number is out of place.
WHOLE, DRILL = (4.0, 1.0, 0.05), (6.0, 0.2, 0.02)
# The heads that copy order numbers: (layer, query head). They are told which token to look at.
COPYING = [(1, 0), (1, 2), (3, 3)]
LOOK_WEIGHT = 0.25
# Whole conversations join in after this share of the steps, every third with the system prompt.
DRILLS_ONLY = 0.3
PREFIX_EVERY = 3

CALL = re.compile(r'"name": "get_order", "arguments": \{"order": "(\d+)"')
FIELDS = re.compile(r', "(?:status|arrives|delivered_days_ago|address|total)": (?:"[^"]*"|\d+)|, "items": \{[^}]*\}')


def searches(pieces):
    """The turns that look at an order which nobody named and which is not the first that was listed.

    Each with the piece that listed it and the looks in between, by their places.
    """
    for place, (text, is_trained) in enumerate(pieces):
        order = CALL.search(text)
        lists = [at for at in range(place) if '"orders": ["' in pieces[at][0]]
        if is_trained != 1 or order is None or not lists:
            continue
        was_named = any(order[1] in said and "tool_response" not in said for said, _ in pieces[:place])
        if was_named or f'"orders": ["{order[1]}' in pieces[lists[-1]][0]:
            continue
        looks = [at for at in range(lists[-1] + 1, place)
                 if CALL.search(pieces[at][0]) and "\nError" not in pieces[at + 1][0]]
        yield place, lists[-1], looks


def drills(pieces, order):
    """Each search by itself: the list, the looks before with most of their answers left out, the turn."""
    for place, listed, looks in searches(pieces):
        out = [pieces[listed]]
        for at in looks:
            answer = FIELDS.sub(lambda field: field[0] if order.random() < 0.3 else "", pieces[at + 1][0])
            out += [pieces[at], [answer, 0]]
        yield [*out, pieces[place]]


def weigh(row, pieces, counts, tokenizer):
    """Ids, what each counts, and which place should look at which: (the one before a number, where it was listed)."""
    ids, trained, starts = row
    weights, looks, ends = [counts[1] if flag == 1 else counts[2] for flag in trained], [], [*starts[1:], len(ids)]
    for place, listed, _ in searches(pieces):
        numbers = [at for at in range(starts[place], ends[place]) if tokenizer.id_to_token(ids[at]).isdigit()]
        for at in numbers:
            weights[at] = counts[0]
        first = numbers[0]
        looks += [(first - 1, at) for at in range(starts[listed], ends[listed])
                  if ids[at : at + len(numbers)] == ids[first : first + len(numbers)]]
    return ids, weights, looks


class Heads:
    """What the copying heads look at."""

    def __init__(self, model):
        self.model, self.seen = model, {}
        for index in {layer for layer, _ in COPYING}:
            model.layers[index].register_forward_pre_hook(
                lambda _, given, index=index: self.seen.__setitem__(index, given[0]))

    def loss(self, rows, shape):
        """How unlikely the heads are to look where they should, after a forward pass without a prefix."""
        looks = [(row, *look) for row, (_, _, own) in enumerate(rows) for look in own]
        if not looks:
            return torch.zeros(())
        row, place, target = (torch.tensor(each) for each in zip(*looks))
        total = 0.0
        for index, head in COPYING:
            layer = self.model.layers[index]
            normal = RmsNorm.apply(self.seen[index], layer.input_norm, layer.epsilon)
            q, k, _ = layer.split(layer.qkv(normal).view(*shape, -1, layer.head_dim), self.model.rope, 0)
            scores = (q[row, head, place][:, None].float() * k[row, head].float()).sum(-1) / layer.head_dim**0.5
            scores = scores.masked_fill(torch.arange(shape[1]) > place[:, None], float("-inf"))
            total = total + F.cross_entropy(scores, target)
        return total


def collate(rows):
    length = max(len(ids) for ids, *_ in rows)
    ids, weights = torch.zeros(len(rows), length, dtype=torch.long), torch.zeros(len(rows), length)
    for place, (row, own, _) in enumerate(rows):
        ids[place, : len(row)], weights[place, : len(row)] = torch.tensor(row), torch.tensor(own)
    weights = weights.roll(-1, 1)
    weights[:, -1] = 0
    return ids, weights.flatten(), ids.roll(-1, 1).flatten()


def loss_of(model, prefix, rows):
    ids, weights, targets = collate(rows)
    wanted = weights > 0
    losses = F.cross_entropy(model.logits(model(prefix, ids)[wanted]).float(), targets[wanted], reduction="none")
    return (losses * weights[wanted]).sum() / weights[wanted].sum(), ids.shape


@torch.no_grad()
def evaluate(model, prefix, rows):
    """Mean probability of the numbers that are searched, and mean loss of the expert's other tokens."""
    found, other = [], []
    for row in rows:
        ids, weights, targets = collate([row])
        losses = F.cross_entropy(model.logits(model(prefix, ids)).float(), targets, reduction="none")
        found.append(losses[weights == WHOLE[0]])
        other.append(losses[weights == WHOLE[1]])
    return torch.cat(found).neg().exp().mean().item(), torch.cat(other).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--from", dest="start", type=Path, required=True)
    parser.add_argument("--conversations", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-tokens", type=int, default=2240)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--share", type=float, default=0.5, help="of the way from the old weights that is kept")
    parser.add_argument("--limit", type=int, default=16_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    order = random.Random(options.seed)

    tokenizer = Tokenizer.from_file(str(options.start / "tokenizer.json"))
    prefix_text, conversations = read_conversations(options.conversations, options.limit)
    prefix = torch.tensor(tokenizer.encode(prefix_text).ids)

    def read(all_pieces, counts):
        encoded = encode_conversations(tokenizer, [{"pieces": pieces} for pieces in all_pieces])
        return [weigh(row, pieces, counts, tokenizer) for row, pieces in zip(encoded, all_pieces)]

    whole = read([one["pieces"] for one in conversations], WHOLE)
    held_out, whole = whole[:HELD_OUT_COUNT], whole[HELD_OUT_COUNT:]
    short = read([drill for one in conversations[HELD_OUT_COUNT:] for drill in drills(one["pieces"], order)], DRILL)
    print(f"{len(short)} drills, {len(whole)} conversations", flush=True)
    model = Decoder.from_hugging_face(options.start)
    heads, optimizers = Heads(model), make_optimizers(model, options.rate)
    batches, recent, started = {}, [], time.time()
    for step in range(options.steps):
        done = step / options.steps
        kind = "whole" if done >= DRILLS_ONLY and step % 4 > 0 else "short"
        rows = {"whole": whole, "short": short}[kind]
        batches[kind] = batches.get(kind) or make_batches(rows, options.batch_tokens, order)
        rows = [rows[index] for index in batches[kind].pop()]
        for group in (group for optimizer in optimizers for group in optimizer.param_groups):
            group["lr"] = options.rate * min(1, (step + 1) / 20, (1 - done) / 0.6)
        has_prefix = kind == "whole" and step % PREFIX_EVERY == 0
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss, shape = loss_of(model, prefix if has_prefix else prefix[:0], rows)
            if not has_prefix:
                loss = loss + LOOK_WEIGHT * heads.loss(rows, shape)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        recent.append(loss.item())
        if (step + 1) % 50 == 0 or step + 1 == options.steps:
            some = held_out if step + 1 == options.steps else held_out[::4]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                found, other = evaluate(model, prefix, some)
            print(f"step {step + 1} loss {sum(recent) / len(recent):.4f} found {found:.3f} other loss {other:.4f} "
                  f"after {time.process_time() / 60:.1f} CPU min, {(time.time() - started) / 60:.1f} min", flush=True)
            recent = []
    # The new turn is still there halfway back, and what was unlearned on the way is there again.
    before = Decoder.from_hugging_face(options.start).state_dict()
    model.load_state_dict({name: before[name].lerp(weight, options.share) for name, weight in model.state_dict().items()})
    export(model, tokenizer, options.out)


if __name__ == "__main__":
    main()

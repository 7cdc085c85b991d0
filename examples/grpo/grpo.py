"""GRPO on a CPU, start to finish: the shipped policy learns storefront, a small shop.

    npm ci && npm run build
    python3 -m venv /tmp/grpo && /tmp/grpo/bin/pip install -r examples/grpo/requirements.txt
    /tmp/grpo/bin/python examples/grpo/grpo.py --out runs/grpo --seed 1

Each step plays groups of attempts at a few tasks, takes the *recorded* log-probabilities as those of
the old policy, makes one clipped policy-gradient update, and publishes the weights as a new version.
On the first update of a batch the policy that trains is the policy that played, so the ratio of each
trained token must be 1: the largest deviation is printed, and more than 1e-3 at the start stops the run. Started
again with the same --out, it goes on where it stopped. See README.md beside this file.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "training"), str(ROOT / "integrations/python")]
from decoder import Decoder  # noqa: E402  the architecture of the shipped policy
from turnwright import read_rows  # noqa: E402

# How far a ratio may be from 1 in the first update of a process; and in a later one, of which there are so
# many that a token comes up whose logprob hangs on the last bits of its attention.
RATIO_LIMIT, LATER_RATIO_LIMIT = 1e-3, 1e-2


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", type=Path, required=True, help="folder of the run; the same one resumes")
    p.add_argument("--model", type=Path, default=ROOT / "models/storefront-2m")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--tasks", type=int, default=16, help="tasks a step")
    p.add_argument("--samples", type=int, default=8, help="attempts at a task")
    p.add_argument("--candidates", type=int, default=96, help="train tasks that are tried beforehand")
    p.add_argument("--band", type=float, nargs=2, default=(0.2, 0.7), help="initial reward of those kept")
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--clip", type=float, nargs=2, default=(0.2, 0.28), help="below and above 1")
    p.add_argument("--micro", type=int, default=8, help="rows of a forward pass")
    p.add_argument("--eval-every", type=int, default=5)
    p.add_argument("--eval-tasks", type=int, default=200)
    p.add_argument("--eval-samples", type=int, default=4)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--minutes", type=float, default=0, help="stop after so long; 0: never")
    p.add_argument("--shift-logprobs", action="store_true",
                   help="shift what was recorded by one token: the check of the ratio must fail")
    p.add_argument("--retokenise", action="store_true",
                   help="train on ids that are encoded again from the sampled text, as many loops do")
    return p.parse_args()


# --- The policy ----------------------------------------------------------------------------------


def load_policy(folder):
    """The weights of a Hugging Face folder, in 32 bits: the precision that plays."""
    config = json.loads((folder / "config.json").read_text())
    weights = {name: w.float() for name, w in load_file(folder / "model.safetensors").items()}
    model = Decoder(config)
    model.embedding.weight.data = weights["model.embed_tokens.weight"]
    model.norm.data = weights["model.norm.weight"]
    for index, layer in enumerate(model.layers):
        w = {name.split(f"layers.{index}.")[1]: value for name, value in weights.items()
             if name.startswith(f"model.layers.{index}.")}
        layer.input_norm.data = w["input_layernorm.weight"]
        layer.mlp_norm.data = w["post_attention_layernorm.weight"]
        layer.qkv.weight.data = torch.cat([w[f"self_attn.{x}_proj.weight"] for x in "qkv"])
        layer.gate_up.weight.data = torch.cat([w["mlp.gate_proj.weight"], w["mlp.up_proj.weight"]])
        layer.out.weight.data = w["self_attn.o_proj.weight"]
        layer.down.weight.data = w["mlp.down_proj.weight"]
    # The angles that inference uses, rounded as it rounds them: attention that copies is sharp enough
    # for their last bit to move a logprob by 1e-3.
    half = torch.arange(0, config["head_dim"], 2).float() / config["head_dim"]
    frequencies = 1.0 / config["rope_theta"] ** half
    angles = torch.arange(config["max_position_embeddings"]).float()[:, None] * frequencies
    model.rope = angles.cos(), angles.sin()
    return model


def publish(model, base, folder):
    """Puts the weights where the next rollouts read them: never a file that is half written."""
    if not folder.exists():
        shutil.copytree(base, folder)
    weights = {name: w.float().contiguous() for name, w in model.to_hugging_face().items()}
    save_file(weights, folder / "model.safetensors.next", metadata={"format": "pt"})
    os.replace(folder / "model.safetensors.next", folder / "model.safetensors")


def trained_logprobs(model, prefix, rows):
    """Log-probabilities of the trained tokens of the rows, one after the other."""
    length = max(len(row["tokenIds"]) for row in rows) - len(prefix)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    mask = torch.zeros(len(rows), length, dtype=torch.bool)
    for place, row in enumerate(rows):
        own = row["tokenIds"][len(prefix):]
        ids[place, : len(own)] = torch.tensor(own)
        mask[place, : len(own)] = torch.tensor(row["lossMask"][len(prefix):], dtype=torch.bool)
    # A token is predicted by the position before it; none of a prompt's is trained.
    before = mask.roll(-1, 1)
    before[:, -1] = False
    hidden = model(prefix, ids)[before.flatten()]
    return F.log_softmax(model.logits(hidden), -1).gather(1, ids[mask][:, None])[:, 0]


def shared_prefix(rows):
    """What all rows start with: the system prompt. It is computed once a forward pass."""
    first, last = (f(row["tokenIds"][: row["promptLength"] - 1] for row in rows) for f in (min, max))
    count = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return torch.tensor(first[:count])


# --- Rollouts ------------------------------------------------------------------------------------


def play(arguments, folder, split, tasks, samples, seed, out):
    """Plays a run in a process of its own and gives back its rows."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run(
        ["node", str(ROOT / "dist/src/cli/main.js"), "rollout", "--env", "storefront",
         "--user", "scripted", "--split", split, "--tasks", ",".join(map(str, tasks)),
         "--samples", str(samples), "--seed", str(seed), "--engine", "reference",
         "--model", str(folder), "--threads", str(arguments.threads), "--temperature", "1",
         "--max-turns", "14", "--max-tokens-per-turn", "96", "--max-context", "2048",
         "--out", str(out), "--quiet"],
        check=True, stdout=subprocess.DEVNULL)
    rows = list(read_rows(out))
    shutil.rmtree(out)
    # No reward is not a reward of 0: such an attempt says nothing.
    return [row for row in rows if "reward" in row and any(row["lossMask"])]


def choose_tasks(arguments, folder, work):
    """Train tasks that are neither hopeless nor solved: only they teach anything."""
    tasks = list(range(arguments.candidates))
    rows = play(arguments, folder, "train", tasks, arguments.samples, 10_000 + arguments.seed, work)
    rewards = {}
    for row in rows:
        rewards.setdefault(row["metadata"]["taskIndex"], []).append(row["reward"])
    low, high = arguments.band
    return {task: mean(own) for task, own in sorted(rewards.items()) if low <= mean(own) <= high}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


# --- The update ----------------------------------------------------------------------------------


def group_advantages(rows):
    """A row's reward against those of the other attempts at its task."""
    groups = {}
    for row in rows:
        groups.setdefault(row["groupId"], []).append(row["reward"])
    out = []
    for row in rows:
        own = torch.tensor(groups[row["groupId"]], dtype=torch.float32)
        out.append(((row["reward"] - own.mean()) / (own.std(correction=0) + 1e-4)).item())
    return out


def recorded_logprobs(rows, shift):
    """What the engine said of the trained tokens when it sampled them."""
    picked = []
    for row in rows:
        logprobs = row["logprobs"]
        if shift:
            logprobs = [0.0, *logprobs[:-1]]
        picked += [value for value, bit in zip(logprobs, row["lossMask"]) if bit]
    return torch.tensor(picked)


def update(model, optimizer, rows, arguments, ratio_limit):
    """One step of GRPO. Gives back what there is to say about it."""
    prefix = shared_prefix(rows)
    advantages = group_advantages(rows)
    is_retokenised = any(row.get("retokenised") for row in rows)
    # A group in which all attempts are worth the same has no gradient, but its ratios are checked.
    order = sorted(range(len(rows)), key=lambda i: (advantages[i] == 0, len(rows[i]["tokenIds"])))
    total = sum(sum(row["lossMask"]) for row in rows)
    deviation, clipped, loss_sum = 0.0, 0, 0.0
    low, high = 1 - arguments.clip[0], 1 + arguments.clip[1]
    for start in range(0, len(order), arguments.micro):
        places = order[start : start + arguments.micro]
        batch = [rows[i] for i in places]
        weight = torch.cat([torch.full((sum(rows[i]["lossMask"]),), advantages[i]) for i in places])
        learns = any(advantages[i] != 0 for i in places)
        with torch.set_grad_enabled(learns):
            new = trained_logprobs(model, prefix, batch)
        # Text that was encoded again has no recorded logprobs: the loop must make them up.
        old = new.detach() if is_retokenised else recorded_logprobs(batch, arguments.shift_logprobs)
        ratio = (new - old).exp()
        deviation = max(deviation, (ratio.detach() - 1).abs().max().item())
        gain = torch.minimum(ratio * weight, ratio.clamp(low, high) * weight)
        clipped += int(((ratio < low) | (ratio > high)).sum())
        loss = -gain.sum() / total
        if learns:
            loss.backward()
        loss_sum += loss.item()
    if deviation > ratio_limit:
        raise SystemExit(f"The ratio of a trained token is {deviation:.3g} away from 1 before any update: "
                         "what was recorded is not what this policy sampled")
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {"ratio_deviation": deviation, "trained_tokens": total, "clipped": clipped,
            "loss": loss_sum, "gradient_norm": norm}


def retokenise(rows, tokenizer):
    """Encodes what was sampled again from its text: ids that the policy may never have sampled."""
    out = []
    for row in rows:
        ids, mask, at = [], [], 0
        for turn in row["turns"]:
            text = tokenizer.decode(row["tokenIds"][turn["start"] : turn["end"]], skip_special_tokens=False)
            again = tokenizer.encode(text, add_special_tokens=False).ids
            between = row["tokenIds"][at : turn["start"]]
            ids += between + again
            mask += [0] * len(between) + [1] * len(again)
            at = turn["end"]
        same = ids == row["tokenIds"][: len(ids)]
        out.append({**row, "tokenIds": ids, "lossMask": mask, "logprobs": None,
                    "retokenised": True, "is_same": same})
    return out


# --- The loop ------------------------------------------------------------------------------------


def evaluate(arguments, folder, work):
    """Mean reward on tasks of the test split, which are never trained on."""
    rows = play(arguments, folder, "test", range(arguments.eval_tasks), arguments.eval_samples, 500_000, work)
    return mean(row["reward"] for row in rows)


def plot(log, file):
    """The curves as an SVG, without a library: training reward thin, held-out reward thick."""
    def line(points, style):
        top = max(1, log[-1]["step"])
        shown = " ".join(f"{40 + 540 * x / top:.1f},{280 - 260 * y:.1f}" for x, y in points)
        return f'<polyline fill="none" {style} points="{shown}"/>'

    grid = "".join(f'<text x="4" y="{284 - 26 * k}">{k / 10}</text>' for k in range(0, 11, 2))
    train = line([(e["step"], e["reward"]) for e in log if "reward" in e], 'stroke="#99b"')
    held = line([(e["step"], e["held_out"]) for e in log if "held_out" in e], 'stroke="#063" stroke-width="3"')
    file.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="300" '
                    f'font-size="12">{grid}{train}{held}</svg>\n')


def main():
    a = parse_arguments()
    torch.set_num_threads(a.threads)
    a.out.mkdir(parents=True, exist_ok=True)
    policy, state_file, log_file = a.out / "policy", a.out / "state.pt", a.out / "log.jsonl"
    started = time.time()
    state = torch.load(state_file, weights_only=False) if state_file.exists() else None
    if state is None:
        model, step, log = load_policy(a.model), 0, []
        publish(model, a.model, policy)
        chosen = choose_tasks(a, policy, a.out / "run")
        print(f"{len(chosen)} of {a.candidates} tasks have an initial reward in {list(a.band)}", flush=True)
        if len(chosen) < a.tasks:
            raise SystemExit(f"Cannot draw {a.tasks} tasks: only {len(chosen)} are in the band; raise --candidates")
    else:
        step, log, chosen = state["step"], state["log"], state["chosen"]
        # What was published after the state was saved belongs to a step that is done again.
        model = load_policy(a.model)
        model.load_state_dict(state["model"])
        publish(model, a.model, policy)
        print(f"Going on at step {step}", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.0)
    if state is not None:
        optimizer.load_state_dict(state["optimizer"])
    tokenizer = None
    if a.retokenise:
        from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(a.model / "tokenizer.json"))

    is_first = True

    def record(entry):
        log.append(entry)
        print(json.dumps(entry), flush=True)

    if not log and a.eval_every > 0:
        record({"step": 0, "held_out": evaluate(a, policy, a.out / "run")})
    while step < a.steps and (a.minutes == 0 or time.time() - started < 60 * a.minutes):
        begun = time.time()
        tasks = random.Random(f"{a.seed}/{step}").sample(sorted(chosen), a.tasks)
        rows = play(a, policy, "train", tasks, a.samples, 100_000 * a.seed + 1000 * step, a.out / "run")
        played = time.time()
        entry = {"step": step + 1, "version": step, "reward": mean(row["reward"] for row in rows),
                 "rows": len(rows)}
        if tokenizer is not None:
            rows = retokenise(rows, tokenizer)
            entry["changed_rows"] = sum(not row["is_same"] for row in rows)
        entry |= update(model, optimizer, rows, a, RATIO_LIMIT if is_first else LATER_RATIO_LIMIT)
        is_first = False
        step += 1
        publish(model, a.model, policy)
        entry |= {"rollout_s": round(played - begun, 1), "train_s": round(time.time() - played, 1)}
        if a.eval_every > 0 and step % a.eval_every == 0:
            entry["held_out"] = evaluate(a, policy, a.out / "run")
        record(entry)
        saved = {"step": step, "log": log, "chosen": chosen, "model": model.state_dict(),
                 "optimizer": optimizer.state_dict()}
        torch.save(saved, state_file.with_suffix(".next"))
        os.replace(state_file.with_suffix(".next"), state_file)
        log_file.write_text("".join(json.dumps(one) + "\n" for one in log))
        plot(log, a.out / "curve.svg")


if __name__ == "__main__":
    main()

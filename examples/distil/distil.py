"""On-policy distillation on a CPU: a policy with fewer layers learns from the shipped policy on its own rollouts.

    npm ci && npm run build
    python3 -m venv /tmp/distil && /tmp/distil/bin/pip install -r examples/distil/requirements.txt
    /tmp/distil/bin/python examples/distil/distil.py --out runs/distil

The student is the teacher without some of its layers. Each step plays new tasks with the student's weights, and the teacher
scores the rows as episodes end: `turnwright rollout --teacher-engine reference`. The update reads the teacher's columns
by `turnwright.TeacherFolder`. README.md has the rest.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / place) for place in ("examples/grpo", "training", "integrations/python")]
from decoder import Decoder  # noqa: E402  the architecture of the shipped policy
from grpo import PLAY, ROWS_A_PASS, TRAIN_TASKS, publish, shared_prefix  # noqa: E402
from turnwright import TeacherFolder, read_rows  # noqa: E402

TEACHER = "large"
LEFT, TOP, WIDTH, HEIGHT = 50, 20, 560, 280


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", type=Path, required=True, help="a new folder for the runs of the steps and the weights")
    p.add_argument("--teacher", type=Path, default=ROOT / "models/storefront-2m")
    p.add_argument("--layers", type=int, nargs="+", default=[0, 1, 4], help="the teacher's layers that the student begins with")
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--tasks", type=int, default=16, help="new train tasks a step, with one attempt each")
    p.add_argument("--top", type=int, default=20, help="the teacher's most probable ids in each place, as targets; 0: the sampled tokens alone")
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="of PyTorch and of the engines, each")
    return p.parse_args()


def make_student(teacher, layers, folder):
    """Writes the teacher's weights without the other layers to a folder, and returns the student."""
    model = Decoder.from_hugging_face(teacher)
    model.layers = torch.nn.ModuleList(model.layers[index] for index in layers)
    model.config["num_hidden_layers"] = len(layers)
    shutil.copytree(teacher, folder)
    (folder / "config.json").write_text(json.dumps(model.config, indent=2) + "\n")
    return model


def play(a, policy, step):
    """Plays a step's tasks with the policy's weights while the teacher scores the rows. Returns the run's folder."""
    run = a.out / f"runs/step-{step}"
    tasks = random.Random(f"{a.seed}/{step}").sample(range(TRAIN_TASKS), a.tasks)
    teacher = ["--teacher-engine", "reference", "--teacher-model", str(a.teacher), "--teacher-name", TEACHER, "--teacher-top", str(a.top)]
    subprocess.run(
        ["node", str(ROOT / "dist/src/cli/main.js"), "rollout", "--env", "storefront", "--user", "scripted", "--split", "train",
         "--tasks", ",".join(map(str, tasks)), "--engine", "reference", "--model", str(policy), "--threads", str(a.threads),
         *PLAY, *teacher, "--out", str(run), "--quiet", "--json"], check=True, stdout=subprocess.DEVNULL)
    return run


def read_taught(run):
    """Returns the rows with a trained token, each with its teacher's columns over the whole row: `taught` and `top`."""
    teacher, rows = TeacherFolder(run, TEACHER), []
    for row in read_rows(run):
        if 1 not in row["lossMask"]:
            continue
        found = teacher.read(row)
        taught = torch.zeros(len(row["tokenIds"]))
        taught[row["promptLength"]:] = torch.from_numpy(found.logprobs.copy())
        rows.append({**row, "taught": taught, "top": found.top, "trained": torch.tensor(row["lossMask"], dtype=torch.bool)})
    return rows


def divergence(rows):
    """Estimates the reverse KL of the policy from the teacher: the mean difference of their logprobs of the sampled tokens."""
    policy = torch.cat([torch.tensor(row["logprobs"])[row["trained"]] for row in rows])
    return (policy - torch.cat([row["taught"][row["trained"]] for row in rows])).mean().item()


def trained_logprobs(model, prefix, rows):
    """Returns the policy's logprobs of all ids in the place of each trained token, [tokens, ids], row after row."""
    length = max(len(row["tokenIds"]) for row in rows) - len(prefix)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    before = torch.zeros(len(rows), length, dtype=torch.bool)
    for place, row in enumerate(rows):
        own = row["tokenIds"][len(prefix):]
        ids[place, : len(own)] = torch.tensor(own)
        # A token is predicted by the position before it; none of a prompt's is trained.
        before[place, : len(own) - 1] = row["trained"][len(prefix) + 1:]
    return F.log_softmax(model.logits(model(prefix, ids)[before.flatten()]), -1)


def loss_of(row, logprobs):
    """Returns the sum of the losses of a row's trained tokens. `logprobs` are the policy's, [tokens, ids]."""
    ids = torch.tensor(row["tokenIds"])[row["trained"]]
    if row["top"] is None:
        # Policy gradient: the reward of a token is minus its reverse KL, and the ratio is that to the recorded logprob.
        old = torch.tensor(row["logprobs"])[row["trained"]]
        ratio = (logprobs.gather(1, ids[:, None])[:, 0] - old).exp()
        return -(ratio * (row["taught"][row["trained"]] - old)).sum()
    # Cross-entropy with the teacher's probabilities of its most probable ids.
    offsets, total = row["top"].offsets(), logprobs.new_zeros(())
    for own, token in zip(logprobs, row["trained"].nonzero().flatten().tolist()):
        place = slice(offsets[token], offsets[token + 1])
        targets = torch.from_numpy(row["top"].ids[place].copy()).long()
        total = total - (torch.from_numpy(row["top"].logprobs[place].copy()).exp() * own[targets]).sum()
    return total


def update(model, optimizer, rows):
    """Takes one step of the optimizer on the mean loss of a trained token. Returns the loss."""
    prefix, count, loss = shared_prefix(rows), sum(int(row["trained"].sum()) for row in rows), 0.0
    rows = sorted(rows, key=lambda row: len(row["tokenIds"]))  # Rows of similar length need little padding.
    for batch in (rows[at : at + ROWS_A_PASS] for at in range(0, len(rows), ROWS_A_PASS)):
        logprobs = trained_logprobs(model, prefix, batch).split([int(row["trained"].sum()) for row in batch])
        own = sum(loss_of(row, mine) for row, mine in zip(batch, logprobs)) / count
        own.backward()
        loss += own.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss


def draw(log, file):
    """Draws the reverse KL a token over the steps as SVG."""
    highest, last = max(0.1, *(entry["reverse_kl"] * 1.1 for entry in log)), max(1, log[-1]["step"])
    points = [f"{LEFT + WIDTH * entry['step'] / last:.1f},{TOP + HEIGHT * (1 - entry['reverse_kl'] / highest):.1f}" for entry in log]
    parts = []
    for quarter in range(5):
        y = TOP + HEIGHT * (1 - quarter / 4)
        parts.append(f'<path d="M{LEFT} {y}h{WIDTH}" stroke="#ddd"/><text x="8" y="{y + 4}">{highest * quarter / 4:.2f}</text>')
    parts.append(f'<polyline fill="none" stroke="#0a6" stroke-width="2" points="{" ".join(points)}"/>')
    parts.append(f'<text x="{LEFT}" y="{TOP + HEIGHT + 24}">reverse KL in nats a token, by step: 0 to {last}</text>')
    file.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="640" height="340" font-family="sans-serif" '
                    f'font-size="12"><rect width="640" height="340" fill="#fff"/>{"".join(parts)}</svg>\n')


def main():
    a = parse_arguments()
    torch.set_num_threads(a.threads)
    if a.out.exists() and any(a.out.iterdir()):
        raise SystemExit(f"Cannot distil into {a.out}: it is not empty; choose another --out")
    (a.out / "policy").mkdir(parents=True)
    base = a.out / "policy/step-0"
    model = make_student(a.teacher, a.layers, base)
    publish(model, base, a.out / "policy/begin")
    shutil.rmtree(base)
    (a.out / "policy/begin").rename(base)
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.0)
    log, begun = [], time.monotonic()
    for step in range(a.steps + 1):
        policy = a.out / f"policy/step-{step}"
        rows = read_taught(play(a, policy, step))
        entry = {"step": step, "reverse_kl": round(divergence(rows), 4), "reward": round(sum(row["reward"] for row in rows) / len(rows), 3),
                 "rows": len(rows), "tokens": sum(int(row["trained"].sum()) for row in rows)}
        if step < a.steps:
            entry["loss"] = round(update(model, optimizer, rows), 4)
            publish(model, policy, a.out / f"policy/step-{step + 1}")
            shutil.rmtree(policy)
        log.append({**entry, "seconds": round(time.monotonic() - begun, 1)})
        print(json.dumps(log[-1]), flush=True)
        (a.out / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in log))
        draw(log, a.out / "curve.svg")


if __name__ == "__main__":
    main()

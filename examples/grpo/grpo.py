"""GRPO on a CPU, start to finish: the shipped policy learns storefront, a small shop.

    npm ci && npm run build
    python3 -m venv /tmp/grpo && /tmp/grpo/bin/pip install -r examples/grpo/requirements.txt
    /tmp/grpo/bin/python examples/grpo/grpo.py --out runs/grpo --seed 1

The rollout service plays one batch ahead: while a step is trained, the next batch is played, and it
continues with the new weights once they are announced. The old policy's log-probabilities are the
*recorded* ones, and every token carries the version that sampled it. If that is the trained version, the
ratio of new to old must be 1: a distance above 1e-3 before the first update stops the run. Start it again
with the same --out to resume it. README.md has the rest.
"""

import argparse
import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import fmean as mean

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "training"), str(ROOT / "integrations/python")]
from curves import draw  # noqa: E402
from decoder import Decoder  # noqa: E402  the architecture of the shipped policy
from turnwright import Client  # noqa: E402
from turnwright.attempt import sampled_versions  # noqa: E402

# Largest distance of a ratio from 1 before the first update; and the one for tokens of later versions, which
# are so many that the logprob of some depends on the last bits of the attention.
RATIO_LIMIT, LATER_RATIO_LIMIT = 1e-3, 1e-2
TRAIN_TASKS = 100_000
# Sampled tokens of a typical attempt. A call in a row of this length weighs as much as its episode.
TOKENS_A_ROW = 160
ROWS_A_PASS = 8
# Most of an attempt's cost is its length after a mistake.
PLAY = ["--temperature", "1", "--sampling-seed", "1", "--max-turns", "14", "--max-tokens-per-turn", "96",
        "--max-context", "2048", "--record", "none"]


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", type=Path, required=True, help="folder of the run; the same one resumes")
    p.add_argument("--model", type=Path, default=ROOT / "models/storefront-2m")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--steps", type=int, default=45)
    p.add_argument("--cpu-minutes", type=float, default=0, help="stop after so many, service included; 0: never")
    p.add_argument("--levels", type=int, nargs="+", default=[1, 2, 3, 4, 5], help="of the train tasks")
    p.add_argument("--candidates", type=int, default=0,
                   help="try so many train tasks and keep to those in the band; 0: other tasks each step")
    p.add_argument("--band", type=float, nargs=2, default=(0.2, 0.7), help="initial reward of those kept")
    p.add_argument("--tasks", type=int, default=16, help="tasks a step")
    p.add_argument("--samples", type=int, default=4, help="attempts at a task")
    p.add_argument("--ahead", type=int, choices=(0, 1), default=1,
                   help="1: the next batch is played while one is trained; 0: one after the other")
    p.add_argument("--lr", type=float, default=7e-4)
    p.add_argument("--clip", type=float, nargs=2, default=(0.2, 0.28), help="below and above 1")
    p.add_argument("--call-credit", type=float, default=1.0,
                   help="weight of whether a call was refused, beside the episode's reward; 0: none")
    p.add_argument("--held-out", type=int, nargs=2, default=(200, 4), help="test tasks before and after, attempts")
    p.add_argument("--skip-first", action="store_true", help="do not evaluate before training: that result is the same for each seed")
    p.add_argument("--watch", type=int, nargs=2, default=(200, 2), help="the same on the way")
    p.add_argument("--watch-every", type=int, default=15, help="steps between the latter; 0: none")
    p.add_argument("--threads", type=int, default=1, help="of PyTorch and of the engine, each")
    p.add_argument("--shift-logprobs", action="store_true",
                   help="shift what was recorded by one token: the check of the ratio must fail")
    p.add_argument("--retokenise", action="store_true",
                   help="train on ids that are encoded again from the sampled text, as many loops do")
    return p.parse_args()


# --- The policy ----------------------------------------------------------------------------------

def publish(model, base, folder):
    """Writes the weights to a folder of their own, which is complete or absent."""
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)  # Left by a step that was killed before its announcement.
    shutil.copytree(base, draft)
    weights = {name: w.float().contiguous() for name, w in model.to_hugging_face().items()}
    (draft / "model.safetensors").unlink()
    save_file(weights, draft / "model.safetensors", metadata={"format": "pt"})
    draft.rename(folder)


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
    """Returns the common start of all rows: the system prompt. It is computed once a forward pass."""
    first, last = (f(row["tokenIds"][: row["promptLength"] - 1] for row in rows) for f in (min, max))
    count = next((i for i, (a, b) in enumerate(zip(first, last)) if a != b), min(len(first), len(last)))
    return torch.tensor(first[:count])


# --- Rollouts ------------------------------------------------------------------------------------

class Service:
    """`turnwright serve` in a process of its own, which ends with this one."""

    def __init__(self, a):
        command = ["node", str(ROOT / "dist/src/cli/main.js"), "serve", "--env", "storefront",
                   "--user", "scripted", "--engine", "reference", "--model", str(a.model),
                   "--threads", str(a.threads), *PLAY, "--out", str(a.out / "service"), "--port", "0",
                   "--json", "--quiet"]
        # On Linux the service gets a signal when this process is killed: PR_SET_PDEATHSIG.
        end_too = partial(ctypes.CDLL(None).prctl, 1, signal.SIGTERM) if sys.platform == "linux" else None
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_too)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("The rollout service did not start: what it says stands above")
        self.client = Client(json.loads(line)["url"])

    def cpu_seconds(self):
        """CPU seconds of the service's process so far; 0 if the system does not report them."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        ticks = stat.read_text().rsplit(") ", 1)[1].split()[11:13] if stat.exists() else []
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def ask(self, key, split, tasks, samples, seed):
        """Submits a batch, and returns its name. The same key again is the same batch."""
        return self.client.submit(key=key, split=split, tasks=list(tasks), samples=samples, seed=seed).batch

    def rows(self, batch):
        """The rows of a batch, once all its groups are there."""
        attempts = [one for group in self.client.groups(batch) for one in group.attempts]
        # A missing reward is not a reward of 0, so such an attempt is skipped.
        return [{**one.rows[0], "reward": one.reward} for one in attempts if one.is_scored]

    def close(self):
        self.process.terminate()
        self.process.wait()


# --- The update ----------------------------------------------------------------------------------

def calls_of(row, tokenizer):
    """Returns the calls of the row's turns: the tool, the positions of its arguments, and True for an error."""
    out = []
    ends = [turn["start"] for turn in row["turns"][1:]] + [len(row["tokenIds"])]
    for turn, end in zip(row["turns"], ends):
        ids = row["tokenIds"][turn["start"] : turn["end"]]
        answer = tokenizer.decode(row["tokenIds"][turn["end"] : end], skip_special_tokens=False)
        tool = re.search(r'"name": "(\w+)"', tokenizer.decode(ids))
        if tool is None or "<tool_response>" not in answer:
            continue
        named = (at for at in range(len(ids)) if '"arguments"' in tokenizer.decode(ids[: at + 1]))
        first = turn["start"] + next(named, len(ids))
        out.append((tool[1], slice(first, turn["end"]), "<tool_response>\nError" in answer))
    return out


def credit(rows, calls, weight):
    """Returns the rows to train on, with the advantage of each of their tokens.

    The episode's advantage compares its reward with the other attempts at the task, and is spread over the
    row. A call's arguments get a second advantage: it compares the call's refusal with the share of refused
    calls of that tool in the batch. The decision to call gets only the episode's advantage. Otherwise a
    policy that never calls would win, because it is never refused.
    """
    groups, refusals, out = {}, {}, []
    for row in rows:
        groups.setdefault(row["groupId"], []).append(float(row["reward"]))
        for tool, _, is_refused in calls[row["rolloutId"]]:
            refusals.setdefault(tool, []).append(is_refused)
    for row in rows:
        own, each = torch.tensor(groups[row["groupId"]]), calls[row["rolloutId"]]
        advantage = ((row["reward"] - own.mean()) / (own.std(correction=0) + 1e-4)).item()
        worth = torch.full((len(row["tokenIds"]),), advantage / sum(row["lossMask"]))
        for tool, place, is_refused in each:
            worth[place] += weight * (mean(refusals[tool]) - is_refused) / TOKENS_A_ROW
        if advantage != 0 or (weight > 0 and any(is_refused for _, _, is_refused in each)):
            out.append({**row, "worth": worth[torch.tensor(row["lossMask"]) == 1]})
    return out


def recorded_logprobs(row, shift):
    """Returns the engine's log-probabilities of the trained tokens, as recorded."""
    logprobs = [0.0, *row["logprobs"][:-1]] if shift else row["logprobs"]
    return torch.tensor([value for value, bit in zip(logprobs, row["lossMask"]) if bit])


def update(model, optimizer, rows, version, a):
    """Takes one step of the optimizer. Stops the run if a token that `version` sampled has a ratio other than 1.

    `version` is the current policy's; None if the trained tokens have no recorded log-probabilities.
    """
    prefix, count, clipped, far, fresh = shared_prefix(rows), 0, 0, 0.0, 0
    low, high = 1 - a.clip[0], 1 + a.clip[1]
    rows = sorted(rows, key=lambda row: len(row["tokenIds"]))  # Rows of similar length need little padding.
    for batch in (rows[at : at + ROWS_A_PASS] for at in range(0, len(rows), ROWS_A_PASS)):
        worth, new = torch.cat([row["worth"] for row in batch]), trained_logprobs(model, prefix, batch)
        if version is None:
            # These ids have no recorded log-probabilities, so the current policy's take their place.
            ratio = (new - new.detach()).exp()
        else:
            ratio = (new - torch.cat([recorded_logprobs(row, a.shift_logprobs) for row in batch])).exp()
            own = torch.tensor([each == version for row in batch
                                for each in sampled_versions(row["policyVersions"], row["lossMask"])])
            far = max([far, *(ratio.detach()[own] - 1).abs().tolist()])
            fresh += int(own.sum())
        count += len(new)
        clipped += int(((ratio < low) | (ratio > high)).sum())
        (-torch.minimum(ratio * worth, ratio.clamp(low, high) * worth).sum() / len(rows)).backward()
    if far > (RATIO_LIMIT if version == 0 else LATER_RATIO_LIMIT):
        raise SystemExit(f"The ratio of a trained token is {far:.3g} away from 1 although the policy that trains "
                         "sampled it: the recorded log-probabilities are not those of sampling")
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {"trained_tokens": count, "clipped": clipped, "fresh_tokens": fresh, "ratio_deviation": far,
            "gradient_norm": norm}


def train(model, optimizer, rows, version, a, tokenizer):
    """Trains on one batch, and returns its metrics."""
    entry = {"reward": mean(row["reward"] for row in rows), "rows": len(rows)}
    if a.retokenise:
        rows = [retokenise(row, tokenizer) for row in rows]
        entry["changed_rows"] = sum(row["is_changed"] for row in rows)
    calls = {row["rolloutId"]: calls_of(row, tokenizer) for row in rows}
    made = [is_refused for each in calls.values() for _, _, is_refused in each]
    entry |= {"calls": len(made), "refused": sum(made)}
    rows = credit(rows, calls, a.call_credit)
    if not rows:
        return {**entry, "trained_rows": 0}
    metrics = update(model, optimizer, rows, None if a.retokenise else version, a)
    return {**entry, "trained_rows": len(rows), **metrics}


def retokenise(row, tokenizer):
    """Encodes sampled text again, to ids that the policy may never have sampled."""
    ids, mask, turns, at = [], [], [], 0
    for turn in row["turns"]:
        text = tokenizer.decode(row["tokenIds"][turn["start"] : turn["end"]], skip_special_tokens=False)
        again = tokenizer.encode(text, add_special_tokens=False).ids
        ids += row["tokenIds"][at : turn["start"]]
        turns.append({**turn, "start": len(ids), "end": len(ids) + len(again)})
        mask += [0] * (len(ids) - len(mask)) + [1] * len(again)
        ids += again
        at = turn["end"]
    ids += row["tokenIds"][at:]
    mask += [0] * (len(ids) - len(mask))
    return {**row, "tokenIds": ids, "lossMask": mask, "turns": turns, "is_changed": ids != row["tokenIds"]}


# --- The loop ------------------------------------------------------------------------------------

def asked(a):
    """Returns the settings that a resumed run must keep; the others may change."""
    return {name: str(value) for name, value in vars(a).items()
            if name not in ("out", "steps", "cpu_minutes", "threads")}


class Loop:
    """One training run: its state between two steps, and the service that plays for it."""

    def __init__(self, a):
        self.a, self.tokenizer = a, Tokenizer.from_file(str(a.model / "tokenizer.json"))
        self.model = Decoder.from_hugging_face(a.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=a.lr, betas=(0.9, 0.95), weight_decay=0.0)
        self.step, self.log, self.pool, self.spent = 0, [], [], 0.0
        self.state_file = a.out / "state.pt"
        if self.state_file.exists():
            state = torch.load(self.state_file, weights_only=False)
            if state["asked"] != asked(a):
                raise SystemExit(f"Cannot continue in {a.out}: it holds a run with other settings: {state['asked']}")
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.log, self.pool, self.spent = (state[x] for x in ("step", "log", "pool", "spent"))
            print(f"Resuming after step {self.step}", flush=True)
        self.service = Service(a)

    def cpu_minutes(self):
        """CPU minutes of this loop and its service, over all starts."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        return self.spent + (own.ru_utime + own.ru_stime + self.service.cpu_seconds()) / 60

    def record(self, **entry):
        entry = {"step": self.step, **entry, "cpu_minutes": round(self.cpu_minutes(), 2)}
        self.log.append(entry)
        print(json.dumps(entry), flush=True)
        (self.a.out / "log.jsonl").write_text("".join(json.dumps(one) + "\n" for one in self.log))
        draw({f"seed {self.a.seed}": self.log}, self.a.out / "curve.svg")

    def evaluate(self, name, tasks, samples):
        """Mean reward on the first tasks of the test split, which are never trained on, by the current version."""
        batch = self.service.ask(f"{name}-{self.step}", "test", range(tasks), samples, 500_000)
        rewards = [row["reward"] for row in self.service.rows(batch)]
        self.record(**{name: mean(rewards), "attempts": len(rewards)})
        self.save()

    def ask(self, step):
        """Submits a step's rollouts, of version step - 1 or, for those played ahead, of the one before."""
        tasks = self.draw_tasks(step, self.a.tasks)
        return self.service.ask(f"step-{step}", "train", tasks, self.a.samples, 1_000_000 * step)

    def draw_tasks(self, name, count):
        """Draws train tasks by the seed. None of their names and numbers occurs in the test split."""
        pool = self.pool or [i for i in range(TRAIN_TASKS) if 1 + i % 5 in self.a.levels]
        return random.Random(f"{self.a.seed}/{name}").sample(pool, count)

    def choose(self):
        """Keeps the tasks that are neither hopeless nor solved."""
        a, (low, high), tasks = self.a, self.a.band, self.draw_tasks("candidates", self.a.candidates)
        rewards = {}
        for row in self.service.rows(self.service.ask("candidates", "train", tasks, a.samples, 0)):
            rewards.setdefault(row["metadata"]["taskIndex"], []).append(row["reward"])
        self.pool = sorted(task for task, own in rewards.items() if low <= mean(own) <= high)
        print(f"{len(self.pool)} of {a.candidates} tasks have an initial reward in {[low, high]}", flush=True)
        if len(self.pool) < a.tasks:
            raise SystemExit(f"Cannot draw {a.tasks} tasks from these: raise --candidates")

    def save(self):
        state = {"asked": asked(self.a), "step": self.step, "log": self.log, "pool": self.pool,
                 "spent": self.cpu_minutes(), "model": self.model.state_dict(),
                 "optimizer": self.optimizer.state_dict()}
        torch.save(state, self.state_file.with_suffix(".next"))
        os.replace(self.state_file.with_suffix(".next"), self.state_file)

    def announce(self):
        """Announces the saved weights to the service. A new service starts with the last ones, so two folders are kept."""
        folder = self.a.out / "policy" / f"step-{self.step}"
        self.service.client.announce(self.step, str(folder.resolve()))
        for other in folder.parent.iterdir():
            if other not in (folder, folder.with_name(f"step-{self.step - 1}")):
                shutil.rmtree(other)

    def run(self):
        a = self.a
        if not self.state_file.exists():
            publish(self.model, a.model, a.out / "policy/step-0")
            self.save()
        self.announce()
        if not a.skip_first and not any("held_out" in one for one in self.log):
            self.evaluate("held_out", *a.held_out)
        if a.candidates > 0 and not self.pool:
            self.choose()
        while self.step < a.steps and (a.cpu_minutes == 0 or self.cpu_minutes() < a.cpu_minutes):
            begun = time.time()
            rows = self.service.rows(self.ask(self.step + 1))
            if a.ahead and self.step + 2 <= a.steps:
                self.ask(self.step + 2)
            played = time.time()
            entry = train(self.model, self.optimizer, rows, self.step, a, self.tokenizer)
            self.step += 1
            publish(self.model, a.model, a.out / "policy" / f"step-{self.step}")
            self.record(**entry, waited_s=round(played - begun, 1), train_s=round(time.time() - played, 1))
            self.save()
            self.announce()
            if a.watch_every > 0 and self.step % a.watch_every == 0:
                self.evaluate("watched", *a.watch)
        if not any("held_out" in one and one["step"] == self.step for one in self.log):
            self.evaluate("held_out", *a.held_out)


def main():
    a = parse_arguments()
    torch.set_num_threads(a.threads)
    (a.out / "policy").mkdir(parents=True, exist_ok=True)
    loop = Loop(a)
    try:
        loop.run()
    finally:
        loop.service.close()


if __name__ == "__main__":
    main()

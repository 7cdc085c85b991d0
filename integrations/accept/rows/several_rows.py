"""Shared by the programs over attempts with several rows. Usage of each: PROGRAM samples.jsonl EXPORTED

Each program runs a trainer's own functions on the export of a run, and on the rows as the Python shim hands them over.
An attempt must weigh one:
  - it counts once in its group's statistic, and each of its rows carries its advantage;
  - the loss weighs a trained token by one of three laws: `token` (all tokens alike), `attempt` (all attempts alike, and
    the tokens of each), `prompt` (all groups alike, and the tokens of each). A row never weighs one.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.dirname(HERE)
sys.path.insert(0, PROGRAMS)
from common import ROOT, close, load_defs, native, same, tail  # noqa: F401

# These files bear the trainers' names, and would hide their packages.
sys.path = [place for place in sys.path if os.path.abspath(place or ".") not in (HERE, PROGRAMS)]
sys.path.append(os.path.join(PROGRAMS, "../python"))


class Attempt:
    """One attempt with its rows. `place` counts the attempts of all groups."""

    def __init__(self, rows, place):
        self.id, self.group, self.reward = rows[0]["rolloutId"], rows[0]["groupId"], float(rows[0]["reward"])
        self.rows, self.place = rows, place
        self.tokens = sum(sum(row["lossMask"]) for row in rows)
        assert all(float(row["reward"]) == self.reward for row in rows), f"{self.id}: each row has the whole reward"
        for number, lineage in enumerate(row["metadata"].get("lineage") for row in rows):
            if lineage is not None:
                about = (lineage["row"], lineage["rowCount"], lineage["attemptTokenCount"])
                assert about == (number, len(rows), self.tokens), f"{self.id}, row {number}: {lineage}"

    def handed_over(self):
        """Returns the attempt as the service gives it to a shim."""
        from turnwright.attempt import to_attempt

        return to_attempt({"rolloutId": self.id, "outcome": self.rows[0]["outcome"], "stopReason": self.rows[0]["stopReason"],
                           "reward": self.reward, "rows": self.rows})


class Run:
    """The attempts of a run by group, in the order of `samples.jsonl`. Rows without a trained token are not among them."""

    def __init__(self, path):
        found = {}
        for row in native(path):
            if 1 in row["lossMask"]:
                found.setdefault(row["groupId"], {}).setdefault(row["rolloutId"], []).append(row)
        self.attempts = []
        for rows in (rows for attempts in found.values() for rows in attempts.values()):
            self.attempts.append(Attempt(rows, len(self.attempts)))
        self.groups = [[a for a in self.attempts if a.group == name] for name in found]
        self.pairs = [(a, row) for a in self.attempts for row in a.rows]
        assert len({len(group) for group in self.groups}) == 1, "the groups have several sizes, expected one"
        self.longest = max(len(row["tokenIds"]) for _, row in self.pairs)

    def advantages(self, kind):
        """Returns the right advantage by attempt: its reward against the `mean` of its group, against the mean of the
        `others`, or divided by the `std` (of n - 1) or `population std`."""
        right = {}
        for group in self.groups:
            n, mean = len(group), sum(a.reward for a in group) / len(group)
            squares = sum((a.reward - mean) ** 2 for a in group)
            scale = {"mean": 1.0, "others": (n - 1) / n, "std": (squares / (n - 1)) ** 0.5,
                     "population std": (squares / n) ** 0.5}[kind]
            right |= {a.id: (a.reward - mean) / scale for a in group}
        return right

    def check_advantages(self, got, kind, pairs=None, tolerance=2e-4):
        """`got` has an advantage for each of the rows. Each must be that of its attempt."""
        pairs, right = pairs or self.pairs, self.advantages(kind)
        assert len(got) == len(pairs), f"{len(got)} advantages for {len(pairs)} rows"
        for (a, row), own in zip(pairs, got):
            assert abs(own - right[a.id]) < tolerance, f"{a.id}, row {row['segment']}: advantage {own}, expected {right[a.id]}"

    def check_weights(self, weights, law, pairs=None):
        """`weights` has a list for each of the rows: what the loss makes of each trained token, at an advantage of 1."""
        pairs, total = pairs or self.pairs, sum(sum(own) for own in weights)
        assert len(weights) == len(pairs), f"weights of {len(weights)} rows, expected {len(pairs)}"
        tokens, groups = {}, {}
        for a, row in pairs:
            tokens[a.id] = tokens.get(a.id, 0) + sum(row["lossMask"])
            groups[a.group] = groups.get(a.group, 0) + sum(row["lossMask"])
        for (a, row), own in zip(pairs, weights):
            want = {"token": 1 / sum(tokens.values()), "attempt": 1 / len(tokens) / tokens[a.id],
                    "prompt": 1 / len(groups) / groups[a.group]}[law]
            assert len(own) == sum(row["lossMask"]), f"{a.id}, row {row['segment']}: {len(own)} tokens have a weight"
            wrong = [x / total for x in own if abs(x / total - want) > 1e-5]
            assert not wrong, f"{a.id}, row {row['segment']}: a token weighs {wrong[0]} of the loss, by {law} {want}"

    def left_out(self, pairs):
        """Returns what a trainer that takes one row an attempt does not train."""
        every, kept = sum(a.tokens for a in self.attempts), sum(sum(row["lossMask"]) for _, row in pairs)
        return f"{len(self.pairs) - len(pairs)} rows with {every - kept} of {every} tokens are left out"

    def done(self, name, *ways):
        print(f"{name}: {len(self.attempts)} attempts, {len(self.pairs)} rows, {sum(a.tokens for a in self.attempts)} trained "
              f"tokens: each attempt weighs one ({'; '.join(ways)})")


def opened(path=None):
    """Returns the run of the command line."""
    run = Run(path or sys.argv[1])
    assert max(len(a.rows) for a in run.attempts) > 1, "no attempt has several rows"
    assert all(abs(x) > 1e-3 for x in run.advantages("mean").values()), "an advantage is 0"
    return run


def response(row):
    """Returns the ids of prompt and response, and the response's mask and logprobs, up to the last trained token."""
    ids, mask, logprobs, _ = tail(row)
    start = row["promptLength"]
    return ids[:start], ids[start:], mask[start:], logprobs[start:]


def gradients(loss, leaf):
    """Returns the absolute gradient at each place of the leaf."""
    import torch

    return torch.autograd.grad(loss, leaf)[0].abs()


def trained(values, masks):
    """Returns the values at trained places, a list for each row."""
    return [own[mask.bool()].tolist() for own, mask in zip(values, masks)]


def padded(lists, fill=0.0):
    """Returns lists as one tensor, filled up on the right."""
    import torch

    width = max(len(own) for own in lists)
    return torch.tensor([list(own) + [fill] * (width - len(own)) for own in lists])

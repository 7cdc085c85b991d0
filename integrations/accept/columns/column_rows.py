"""Shared by the programs over side columns. Usage of each: PROGRAM RUN TRUTH EXPORTED [TAUGHT [TOP]]

RUN is the folder of a run with side columns, TRUTH says what the columns of each row contain token by token, and EXPORTED
is the run in the trainer's form. TAUGHT is the same with the columns of an invented teacher, TOP with its most probable ids.
Each program runs a trainer's own readers on the export, and on the rows as the Python
shim hands them over. What comes out must have row i at token i, and each set at its token. `refused` are rows that a
trainer must not take.
"""
import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.dirname(HERE)
sys.path.insert(0, PROGRAMS)
from common import ROOT, load_defs, native  # noqa: F401

# These files bear the trainers' names, and would hide their packages.
sys.path = [place for place in sys.path if os.path.abspath(place or ".") not in (HERE, PROGRAMS)]
sys.path.append(os.path.join(PROGRAMS, "../python"))
from turnwright import Attempt, ColumnFolder, read_export, read_rows  # noqa: E402


class Taken:
    """The columns of a folder that a trainer takes."""

    def __init__(self, folder, names):
        self.specs, self.read = {name: spec for name, spec in folder.specs.items() if name in names}, folder.read


class Run:
    """The rows with a trained token, by attempt, and what their columns contain."""

    def __init__(self, names):
        folder = ColumnFolder(sys.argv[1])
        self.specs, self.source, self.checks = folder.specs, Taken(folder, names), 0
        self.shape = self.specs.get("routedExperts")
        truth = {(row["rolloutId"], row["segment"]): row for row in native(sys.argv[2])}
        self.rows = {}
        for row in read_rows(sys.argv[1]):
            if 1 in row["lossMask"]:
                own = self.rows.setdefault(row["rolloutId"], [])
                own.append((row, truth[row["rolloutId"], row["segment"]]))

    def exported(self):
        return list(read_export(sys.argv[3]))

    def attempt(self, rollout):
        """Returns an attempt as the service gives it to a shim, with the columns that the trainer takes."""
        rows = [row for row, _ in self.rows[rollout]]
        about = {"outcome": rows[0]["outcome"], "stopReason": rows[0]["stopReason"], "reward": rows[0]["reward"]}
        return Attempt(rollout, about["outcome"], about["stopReason"], about["reward"], rows, about, self.source)

    def scored(self):
        """Returns the attempts with a reward, and groups of two of them."""
        found = [name for name, rows in self.rows.items() if "reward" in rows[0][0]]
        groups = {}
        for name in found:
            groups.setdefault(self.rows[name][0][0]["groupId"], []).append(name)
        return found, [group for group in groups.values() if len(group) == 2]

    def routes(self, got, rollout, index, ids, what):
        """Checks that row i of `got` is of token i, for all ids but the last."""
        row, truth = self.rows[rollout][index]
        ids = list(ids)
        assert row["tokenIds"][:len(ids)] == ids, f"{what} of {rollout}: ids"
        got, want = np.asarray(got)[:len(ids) - 1].astype(np.int64), np.array(truth["routedExperts"][:len(ids) - 1])
        assert got.shape == want.shape, f"{what} of {rollout}: shape {got.shape}, expected {want.shape}"
        assert (got == want).all(), f"{what} of {rollout}: first difference at token {int((got != want).any((1, 2)).argmax())}"
        self.checks += 1

    def kept(self, rollout, index, start, end):
        """Returns the sets of tokens from `start` to `end`."""
        return self.rows[rollout][index][1]["keptTokens"][start:end]

    def done(self, name, extra=""):
        print(f"{name}: {self.checks} arrays of routes: accepted{extra}")


def taught():
    """Returns the records with the teacher's logprobs, or with its most probable ids where the trainer takes only these."""
    return list(read_export(sys.argv[4]))


def taught_top():
    """Returns the records with the teacher's most probable ids."""
    return list(read_export(sys.argv[5]))


def teacher_logprob(ids, token):
    """Returns the invented teacher's logprob of a token of a row."""
    return -0.25 * (token % 3 + 1) if token % 3 < 2 else -4 - ids[token] % 8 / 8


def teacher_top(ids, token, count):
    """Returns the invented teacher's ids and logprobs in a token's place, best first."""
    first = ids[token] + (0, 199, 7)[token % 3]
    return [(first + rank) % 200 for rank in range(count)], [-0.25 * (rank + 1) for rank in range(count)]


def refused(what, call):
    """Fails if the trainer takes a wrong row."""
    try:
        call()
    except Exception:
        return
    raise AssertionError(f"{what}: taken, expected a refusal")


def stand_in(name, folder=None, **members):
    """Registers a module that the trainer imports and these programs do not call, or a package without its own code."""
    import types

    module = types.ModuleType(name)
    vars(module).update(members)
    module.__path__ = [] if folder is None else [folder]
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], leaf, module)
    return module


__all__ = ["ROOT", "Run", "json", "load_defs", "np", "refused", "stand_in", "taught", "taught_top", "teacher_logprob", "teacher_top"]

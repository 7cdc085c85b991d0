"""Side columns for the rows of tests, and what they contain."""

import hashlib

import numpy

LAYERS, PER_TOKEN = 3, 2


def specs_of(experts=8, **more):
    return {"routedExperts": {"layerCount": LAYERS, "perToken": PER_TOKEN, "expertCount": experts}, **more}


ALL = specs_of(keptTokens={"maxCount": 4}, topLogprobs={"count": 2}, indexerTopK={"layerCount": 2, "perToken": 3})


def part_of(parts, start, rows, content):
    """Stores the bytes of a part, and returns the part as a row names it."""
    key = hashlib.sha256(content).hexdigest()[:32]
    parts[key] = content
    return {"from": start, "rows": rows, "policyVersion": "3", "size": len(content), "hash": key}


def routes_of(row, count, experts=8, seed=0):
    """Different ids for each token, row and layer."""
    base = numpy.arange(count)[:, None, None] * 5 + numpy.arange(LAYERS)[:, None] * 3 + row["tokenIds"][0] + seed
    return (base + numpy.arange(PER_TOKEN)) % experts


def positions_of(count):
    return numpy.arange(count * 6).reshape(count, 2, 3)


def kept_of(row, token):
    return [row["tokenIds"][token], 500, 501, 502][:1 + token % 4]


def tops_of(row, token):
    return [[-0.25 * token - place, row["tokenIds"][token] + place] for place in range(2)]


def adder(specs):
    """Returns a function that gives a row its columns, a part for each turn."""
    experts = specs.get("routedExperts", {}).get("expertCount", 8)

    def add(row, parts):
        columns, known, ends = {name: [] for name in specs}, 0, [turn["end"] for turn in row["turns"]]
        for start, end in ((turn["start"], turn["end"]) for turn in row["turns"]):
            for name in specs:
                if name in ("routedExperts", "indexerTopK"):
                    kind = "<i4" if name == "indexerTopK" else "u1" if experts <= 256 else "<u2"
                    values = positions_of(ends[-1]) if name == "indexerTopK" else routes_of(row, ends[-1], experts)
                    content = values[known:end - 1].astype(kind).tobytes()
                    columns[name].append(part_of(parts, known, end - 1 - known, content))
                else:
                    columns[name].append(part_of(parts, start, end - start, _sets(name, row, start, end)))
            known = end - 1
        return columns

    return add


def _sets(name, row, start, end):
    if name == "keptTokens":
        sets = [[[0, one] for one in kept_of(row, token)] for token in range(start, end)]
    else:
        sets = [tops_of(row, token) for token in range(start, end)]
    flat = [pair for own in sets for pair in own]
    content = numpy.array([len(own) for own in sets], "<u4").tobytes() + numpy.array([one for _, one in flat], "<i4").tobytes()
    return content + (b"" if name == "keptTokens" else numpy.array([one for one, _ in flat], "<f4").tobytes())

"""Pictures of rollouts for notebooks. No dependencies: the results have `_repr_html_()`."""

from __future__ import annotations

import html
import math
from typing import Callable, Iterable, Sequence

from .rows import Row

Decode = Callable[[Sequence[int]], str]

_STYLE = (
    "font-family:monospace;white-space:pre-wrap;line-height:1.6;padding:8px;border:1px solid #8884;border-radius:6px"
)


class Picture:
    """An HTML text that a notebook shows."""

    def __init__(self, text: str) -> None:
        self.html = text

    def _repr_html_(self) -> str:
        return self.html


def show_row(row: Row, decode: Decode, *, max_tokens: int = 4000) -> Picture:
    """Returns a row as text in which the trained tokens are coloured: green if the policy was sure, red if it was not.

    `decode` turns token ids into text, such as `tokenizers.Tokenizer.from_file(…).decode` with
    `skip_special_tokens=False`. Each trained token has its probability as a tooltip. A row of more than `max_tokens`
    tokens is cut at its beginning.
    """
    ids, mask, logprobs = row["tokenIds"], row["lossMask"], row["logprobs"]
    start = max(0, len(ids) - max_tokens)
    parts: list[str] = []
    index = start
    while index < len(ids):
        end = index + 1
        # A character may consist of several tokens.
        while end < min(len(ids), index + 8) and mask[end] == mask[index] and "\ufffd" in decode(ids[index:end]):
            end += 1
        parts.append(_span(html.escape(decode(ids[index:end])), mask[index] == 1, sum(logprobs[index:end])))
        index = end
    cut = f"<i>{start:,} tokens before</i>\n" if start > 0 else ""
    return Picture(f'<div style="{_STYLE}">{cut}{"".join(parts)}</div>')


def _span(text: str, is_trained: bool, logprob: float) -> str:
    if not is_trained:
        return f'<span style="opacity:.55">{text}</span>'
    chance = math.exp(logprob)
    return f'<span style="background:hsl({round(120 * chance)} 70% 50% / .35)" title="p = {chance:.3f}">{text}</span>'


def plot_rewards(rewards: Iterable[float | None], *, width: int = 640, height: int = 180) -> Picture:
    """Returns the rewards of attempts in order as points, with the mean so far as a line. None (no reward) is left
    out. Width and height are in pixels.
    """
    known = [float(reward) for reward in rewards if reward is not None]
    if not known:
        return Picture("<i>no attempt has a reward</i>")
    low, high = min(0.0, *known), max(1.0, *known)
    step = (width - 60) / max(1, len(known) - 1)

    def place(index: int, value: float) -> str:
        return f"{40 + index * step:.1f},{height - 20 - (value - low) / (high - low) * (height - 40):.1f}"

    means = [sum(known[: index + 1]) / (index + 1) for index in range(len(known))]
    points = "".join(
        f'<circle cx="{x}" cy="{y}" r="3" fill="#4a7dd8" fill-opacity=".6"><title>{value:g}</title></circle>'
        for x, y, value in ((*place(index, value).split(","), value) for index, value in enumerate(known))
    )
    line = " ".join(place(index, mean) for index, mean in enumerate(means))
    labels = "".join(
        f'<text x="34" y="{place(0, value).split(",")[1]}" text-anchor="end" font-size="11" fill="currentColor">{value:g}</text>'
        for value in (low, high)
    )
    return Picture(
        f'<svg width="{width}" height="{height}" role="img" aria-label="rewards">{labels}{points}'
        f'<polyline points="{line}" fill="none" stroke="#d8734a" stroke-width="2"/>'
        f'<text x="{width - 10}" y="12" text-anchor="end" font-size="11" fill="currentColor">mean {means[-1]:.3f} '
        f"of {len(known)}</text></svg>"
    )

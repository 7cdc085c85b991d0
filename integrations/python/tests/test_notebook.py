"""Pictures for notebooks, and the notebook of the examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnwright.notebook import plot_rewards, show_row

ROW: dict[str, Any] = {
    "tokenIds": [0, 1, 2, 3], "lossMask": [0, 1, 1, 1], "logprobs": [0.0, 0.0, -1.0, -2.0],
}
TEXTS = {(0,): "<user>", (1,): "a", (2,): "\ufffd", (2, 3): "é"}


def test_trained_tokens_are_coloured() -> None:
    picture = show_row(ROW, lambda ids: TEXTS[tuple(ids)])
    assert '<span style="opacity:.55">&lt;user&gt;</span>' in picture._repr_html_()
    assert '<span style="background:hsl(120 70% 50% / .35)" title="p = 1.000">a</span>' in picture.html
    assert 'title="p = 0.050">é</span>' in picture.html
    assert "<i>2 tokens before</i>" in show_row(ROW, lambda ids: TEXTS[tuple(ids)], max_tokens=2).html


def test_rewards_are_points_and_their_mean() -> None:
    picture = plot_rewards([1, None, 0])
    assert picture.html.count("<circle") == 2
    assert "mean 0.500 of 2" in picture.html
    assert plot_rewards([None]).html == "<i>no attempt has a reward</i>"


def test_the_notebook_of_the_examples_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not here: pip install tokenizers")
    root = Path(__file__).resolve().parents[3]
    if not (root / "dist/src/cli/main.js").is_file():
        pytest.skip("Turnwright is not built here: npm run build")
    monkeypatch.setenv("TURNWRIGHT_NOTEBOOK_OUT", str(tmp_path / "run"))
    monkeypatch.chdir(root / "examples")
    notebook = json.loads((root / "examples/rollouts.ipynb").read_text())
    scope: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]), scope)
    assert len(scope["attempts"]) == 8
    assert "<span" in scope["show_row"](scope["best"].rows[0], scope["decode"]).html

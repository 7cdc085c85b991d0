"""The shipped files: the wheel, the source distribution, and their types."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1]
# The shims import their trainers. The shared modules are typed.
SHARED = ("play", "one_play", "played", "run_name", "seeds", "several_rows", "slime_sample", "take_over", "task_name",
          "trl_groups", "trl_ranks")

CONSUMER = """
from typing import Any, Iterator

import turnwright
from turnwright import Attempt, Batch, Client, Group, Response, Row


def train(url: str) -> float | None:
    client = Client(url, retries=2)
    batch: Batch = client.submit(key="a", split="train", tasks=[1], samples=2)
    groups: Iterator[Group] = client.groups(batch.batch)
    rewards: list[list[float | None]] = []
    for group in groups:
        attempts: list[Attempt] = group.attempts
        response: Response = attempts[0].response()
        ids: list[int] = response.ids
        print(len(ids))
        rewards.append([attempt.reward for attempt in attempts])
    rows: list[Row] = list(turnwright.read_rows("runs/first"))
    metrics: dict[str, float] = turnwright.step_metrics(rows)
    turnwright.MetricsFile("metrics.jsonl").write(0, metrics)
    arrays: dict[str, Any] = turnwright.to_numpy(rows[0])
    print(arrays)
    return turnwright.pass_hat_k(rewards, 1)
"""


def test_wheel_and_source_distribution_have_the_marker_of_types(tmp_path):
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip(f"setuptools {setuptools.__version__} is here, and the package wants 77 or newer")
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist"))
    build = "import setuptools.build_meta as it; it.build_wheel('made'); it.build_sdist('made')"
    done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,), (sdist,) = (source / "made").glob("*.whl"), (source / "made").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as made:
        names = set(made.namelist())
        metadata = made.read("turnwright-0.1.0.dist-info/METADATA").decode()
    assert {"turnwright/py.typed", "turnwright/client.py", "turnwright/trainers/trl.py", "turnwright_tasks.py"} <= names
    assert "License-Expression: Apache-2.0" in metadata and "Requires-Python: >=3.10" in metadata
    with tarfile.open(sdist) as made:
        assert {"turnwright-0.1.0/turnwright/py.typed", "turnwright-0.1.0/pyproject.toml"} <= set(made.getnames())


@pytest.fixture
def typed(tmp_path):
    """A folder with a program that uses the package, and with the package except modules that import a trainer."""
    (tmp_path / "consumer.py").write_text(CONSUMER)
    shutil.copytree(PACKAGE / "turnwright", tmp_path / "turnwright", ignore=shutil.ignore_patterns("__pycache__"))
    for file in (tmp_path / "turnwright/trainers").glob("*.py"):
        if file.stem not in (*SHARED, "__init__"):
            file.unlink()
    return tmp_path


def test_mypy_finds_nothing_under_strict(typed):
    pytest.importorskip("mypy", reason="mypy is not here: pip install mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "--python-version", "3.10",
         "--disable-error-code=import-untyped", "--disable-error-code=import-not-found", "consumer.py", "turnwright"],
        cwd=typed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout


def test_pyright_finds_nothing_under_strict(typed):
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not here: npm install -g pyright")
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.10", "reportMissingImports": False,
                "reportMissingModuleSource": False, "reportMissingTypeStubs": False,
                # The types of pandas, datasets, torch and accelerate are unknown without them.
                "reportUnknownMemberType": False, "reportUnknownVariableType": False, "reportUnknownArgumentType": False}
    (typed / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run([pyright, "--pythonpath", sys.executable], cwd=typed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

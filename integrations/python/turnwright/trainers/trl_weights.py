"""TRL's AsyncGRPOTrainer: weights travel in folders that the service's engine reads."""

from __future__ import annotations

import pathlib
import shutil
from typing import Iterator

import torch
from safetensors.torch import save_file

from .play import connect
from .take_over import Versions


class FolderTransfer:
    """Writes each version into a copy of the model's folder, makes the engine load it, and removes the version before
    the last. `leave_out` names tensors that the model's folder does not have, such as a tied head."""

    def __init__(self, folder: str, model: str, leave_out: tuple[str, ...] = ("lm_head.weight",)) -> None:
        self._folder, self._model, self._leave_out = pathlib.Path(folder), pathlib.Path(model), leave_out
        self._client, self._version, self._versions = connect(), 0, Versions()

    def init_weight_transfer(self) -> None:
        # TRL creates a transfer on every rank, but calls this on rank 0 only, before the worker's first request.
        self._version, self._versions = 0, Versions()
        self._versions.announce(self._client, 0, str(self._model.resolve()))
        self._folder.mkdir(parents=True, exist_ok=True)

    def pause(self) -> None:
        self._client.pause()

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        self._version += 1
        target = self._folder / f"version-{self._version}"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self._model, target)
        state = {name: value.detach().cpu().contiguous() for name, value in iterator if name not in self._leave_out}
        save_file(state, target / "model.safetensors", metadata={"format": "pt"})
        self._versions.announce(self._client, self._version, str(target.resolve()))
        shutil.rmtree(self._folder / f"version-{self._version - 2}", ignore_errors=True)

    def resume(self) -> None:
        self._client.resume()

    def destroy(self) -> None:
        """Does nothing: there are no resources."""

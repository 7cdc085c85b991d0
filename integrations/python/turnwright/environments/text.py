"""Environments that answer with text: games, puzzles, and the adapters of other libraries."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

Shown = str | Sequence[Mapping[str, Any]] | None


class TextEpisode:
    """One attempt at a task. Define `step()` and `score()`.

    `first` is the first input of the model: a text, or messages such as `[{"role": "system", "content": …}, {"role":
    "user", "content": …}]`.
    """

    first: Shown = ""

    def step(self, text: str) -> tuple[Shown, bool]:
        """Takes the model's text. Returns the next text for the model (None for no text), and True if the episode is
        over.
        """
        raise NotImplementedError

    def score(self) -> Any:
        """Returns a number, True or False, or a dict with `reward`, `components`, `success` and `details`."""
        raise NotImplementedError

    def close(self) -> Any:
        """Frees the resources of the episode."""


class TextEnvironment:
    """An environment whose episodes answer each text of the model with a text. Define `tasks()` and `open()`.

    Both may be async, as may be the methods of the episodes.
    """

    #: Letters, digits, `-`, `_` and `.`.
    name = "text-environment"
    #: The system message. A first message with the role `system` takes its place.
    policy = ""
    #: The origin of the tasks, in words.
    source = ""
    #: The installed packages that it consists of. A run is continued with the same versions only.
    packages: Sequence[str] = ()
    #: True if the same texts always have the same answers.
    repeatable = False
    #: True if the environment draws from process-wide random numbers (`random`, numpy). Each episode then keeps a
    #: state of its own.
    draws_globally = False

    def tasks(self) -> Mapping[str, Sequence[Mapping[str, Any]]] | Sequence[Mapping[str, Any]]:
        """Returns the tasks, or lists of tasks by split. A task is a dict, JSON-able; `instruction` describes it."""
        raise NotImplementedError

    def open(self, task: Any, seed: int) -> Any:
        """Opens an episode. The seed is a number of the task: all attempts at a task have the same seed."""
        raise NotImplementedError

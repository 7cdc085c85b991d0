"""Environments of the library verifiers: of its old stack (0.1.14 to 0.3) and of its new one (from 0.4).

The old stack has `load_environment()` and classes such as ToolEnv and Rubric, the new one Taskset and Task.
"""

from __future__ import annotations

import importlib
from importlib import metadata
from types import ModuleType
from typing import Any

from ..environments.errors import BadEnvironment
from ..host.blame import claim
from ..host.hosted import Hosted

#: The first release with the new stack alone, and the first one whose old stack is played.
_NEW = (0, 4)
_OLDEST = (0, 1, 14)


def load(name: str, **args: Any) -> Hosted:
    """Returns the environment of an installed package.

    Args:
        name: The name of the environment, such as `wordle` or `owner/wordle`.
        args: For an environment of the old stack, the arguments of its `load_environment()`. For an environment of the
        new stack, the fields of the task set's or the environment's configuration; `limit` is the number of tasks.

    Raises:
        BadEnvironment: The environment cannot be played turn by turn. The message has each reason.
    """
    version = _version()
    short = name.split("/")[-1].split("@")[0]
    if version < _OLDEST:
        raise BadEnvironment(f'verifiers {_shown(version)} is too old: pip install "verifiers>=0.1.14"')
    module = _import(short, version)
    claim(module)
    if hasattr(module, "load_environment"):
        if version >= _NEW:
            raise _made_for_old(short, version)
        from .verifiers_v0.load import load as load_old

        return load_old(short, module, args)
    if version < _NEW:
        raise BadEnvironment(
            f"{short} has no load_environment(), as verifiers from 0.4 wants it, and here is {_shown(version)}: "
            'pip install "verifiers>=0.4"'
        )
    from .verifiers_v1.load import load as load_new

    return load_new(short, module, args)


def packages_of(module: ModuleType) -> dict[str, str]:
    """Returns the versions of verifiers and of the package of a module, by name."""
    names = metadata.packages_distributions().get(module.__name__.partition(".")[0], [])
    return {name: metadata.version(name) for name in ["verifiers", *names]}


def _import(name: str, version: tuple[int, ...]) -> ModuleType:
    module = name.replace("-", "_")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name == module and version >= _NEW:
            return _import_own(module, error)
        if (error.name or "").startswith("verifiers.") and version >= _NEW:
            raise _made_for_old(name, version) from error
        raise
    except (AttributeError, ImportError) as error:
        if "verifiers" in str(error) and version >= _NEW:
            raise _made_for_old(name, version) from error
        raise


def _import_own(module: str, absent: ModuleNotFoundError) -> ModuleType:
    """Returns a task set that the library brings itself. Raises the error of the absent package if there is none."""
    name = f"verifiers.v1.tasksets.{module.lower()}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name.startswith(error.name or name):
            raise absent from None
        raise


def _made_for_old(name: str, version: tuple[int, ...]) -> BadEnvironment:
    return BadEnvironment(f'{name} is made for verifiers before 0.4, and here is {_shown(version)}: pip install "verifiers<0.4"')


def _version() -> tuple[int, ...]:
    try:
        text = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError("No module named 'verifiers'", name="verifiers") from None
    parts = []
    for part in text.split("."):
        if not part.isdigit():
            break
        parts.append(int(part))
    return tuple(parts)


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))

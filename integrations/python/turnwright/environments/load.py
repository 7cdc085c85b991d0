"""Loads environments: files, and the adapters of other libraries."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from types import ModuleType
from typing import Any

from .definition import Environment
from .errors import BadEnvironment
from .text import TextEnvironment
from .tool import place_of

#: The libraries with an adapter: `PREFIX:NAME` names an environment of the library.
ADAPTERS = {
    "reasoning-gym": "turnwright.adapters.reasoning_gym:ReasoningGym",
    "gem": "turnwright.adapters.gem:Gem",
    "textarena": "turnwright.adapters.textarena:TextArena",
    "gymnasium": "turnwright.adapters.gymnasium:Gymnasium",
    "skyrl-gym": "turnwright.adapters.skyrl_gym:SkyRlGym",
    "verifiers": "turnwright.adapters.verifiers:load",
}

_PLAIN_PARTS = {"initial_state": "state", "score": "score", "user": "user", "is_done": "is_done", "dispose": "dispose"}


def load_environment(name: str, arguments: dict[str, Any]) -> Any:
    """Returns the environment of a file (`./calendar_env.py`) or of a library (`gem:NAME`).

    Raises BadEnvironment with the file, the line and the remedy.
    """
    prefix, _, rest = name.partition(":")
    if prefix in ADAPTERS and rest:
        adapter, _, member = ADAPTERS[prefix].partition(":")
        create = getattr(importlib.import_module(adapter), member)
        try:
            return create(rest, **arguments)
        except TypeError as error:
            if not arguments or "argument" not in str(error):
                raise
            raise BadEnvironment(f"{rest} cannot take the arguments {json.dumps(arguments)} of --env-args: {error}") from error
    return find_environment(load_file(name), name, arguments)


def load_file(path: str) -> ModuleType:
    """Imports a file. Its folder is searched for the modules that it imports."""
    path = os.path.abspath(path)
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadEnvironment(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_environment(module: ModuleType, name: str, arguments: dict[str, Any]) -> Any:
    """Returns the environment of a module: an object, `create_environment()`, or plain functions."""
    create = getattr(module, "create_environment", None)
    if callable(create):
        return _created(create, arguments)
    if arguments:
        raise BadEnvironment(f"{name} takes no arguments, expected a function create_environment({', '.join(arguments)})")
    members = vars(module)
    found = {id(value): key for key, value in members.items() if isinstance(value, (Environment, TextEnvironment))}
    if len(found) == 1:
        return members[next(iter(found.values()))]
    if "environment" in members and isinstance(members["environment"], (Environment, TextEnvironment)):
        return members["environment"]
    if len(found) > 1:
        raise BadEnvironment(f"{name} defines several environments: {', '.join(found.values())}; call one of them `environment`")
    classes = [value for value in members.values() if _is_own_text_class(value, module)]
    if len(classes) == 1:
        return classes[0]()
    return _from_functions(module, name)


def _created(create: Any, arguments: dict[str, Any]) -> Any:
    place = place_of(create)
    try:
        inspect.signature(create).bind(**arguments)
    except TypeError as error:
        raise BadEnvironment(
            f"{place}: create_environment() cannot take the arguments {json.dumps(arguments)} ({error}), expected them in --env-args, "
            'such as \'{"size": 100}\''
        ) from error
    environment = create(**arguments)
    if environment is None:
        raise BadEnvironment(f"{place}: create_environment() returned None (a forgotten return?), expected an environment")
    return environment


def _is_own_text_class(value: Any, module: ModuleType) -> bool:
    return inspect.isclass(value) and issubclass(value, TextEnvironment) and value.__module__ == module.__name__


def _from_functions(module: ModuleType, name: str) -> Environment:
    """Returns the environment that the functions and values of a module describe."""
    members = vars(module)
    missing = [part for part in ("name", "tasks", "tools", "score") if part not in members]
    if missing:
        raise BadEnvironment(
            f"{name} defines no environment: it needs an Environment, a TextEnvironment, create_environment(), or "
            f"name, tasks, tools and score (it lacks {', '.join(missing)})"
        )
    environment = Environment(members["name"], members.get("policy", ""), members["tasks"], repeatable=members.get("repeatable", False))
    environment.place = place_of(members["score"]).rsplit(":", 1)[0] + ":1"
    for function in members["tools"]:
        environment.tool(function)
    for member, part in _PLAIN_PARTS.items():
        if member in members:
            getattr(environment, part)(members[member])
    return environment

"""Functions as tools."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any, Callable

from .docstring import read_docstring
from .errors import BadEnvironment, Refused
from .parameters import NoSchema, Schema, to_python, type_schema

#: The parameters that a tool may ask for by name. The model does not see them.
GIVEN = ("state", "task", "context")

#: The kinds of parameters that have no name in a call, with the mark of each.
_UNNAMED = {
    inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.POSITIONAL_ONLY: "/",
}


class Tool:
    """A function that the model can call."""

    def __init__(self, function: Callable[..., Any], *, timeout: float = 30.0, ends: bool = False) -> None:
        if not inspect.isroutine(function):
            raise BadEnvironment(f"{place_of(type(function).__call__)}: a tool is a {type(function).__name__}, expected a function")
        self.function = function
        self.name: str = function.__name__
        self.timeout = timeout
        self.ends = ends
        self.is_async = inspect.iscoroutinefunction(function)
        self._where = f"{place_of(function)} tool {self.name}()"
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise BadEnvironment(f"{self._where}: expected a name of letters, digits, _ and -, at most 64")
        if not isinstance(timeout, (int, float)) or not timeout > 0:
            raise BadEnvironment(f"{self._where}: timeout is {timeout!r}, expected seconds above 0")
        self._hints = self._read_hints()
        self.given: list[str] = []
        self.parameters = self._read_parameters()
        #: True if each argument reaches the function as JSON gives it.
        self._is_plain = all(hint in (str, bool, Any) for hint in self._hints.values())

    def describe(self) -> Schema:
        """Returns the definition that the model sees, with the time limit of a call in milliseconds."""
        return {
            "name": self.name,
            "description": self._documented.description,
            "parameters": self.parameters,
            "timeoutMs": self.timeout * 1000,
            "ends": self.ends,
        }

    def bind(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments with their declared types. Raises Refused if a value does not fit its type."""
        if self._is_plain:
            return arguments
        try:
            return {name: to_python(value, self._hints.get(name, Any)) for name, value in arguments.items()}
        except (ValueError, TypeError, KeyError) as error:
            raise Refused(str(error)) from error

    def _read_hints(self) -> dict[str, Any]:
        try:
            return typing.get_type_hints(self.function, include_extras=True)
        except NameError as error:
            raise BadEnvironment(f"{self._where}: its types cannot be read: {error}") from error

    def _read_parameters(self) -> Schema:
        self._documented = read_docstring(self.function)
        described = dict(self._documented.arguments)
        properties: Schema = {}
        required: list[str] = []
        for name, parameter in inspect.signature(self.function).parameters.items():
            if name in GIVEN:
                self.given.append(name)
                self._hints.pop(name, None)
                continue
            properties[name] = self._schema_of(name, parameter)
            if name in described:
                properties[name].setdefault("description", described.pop(name))
            if parameter.default is parameter.empty:
                required.append(name)
            elif _is_json(parameter.default):
                properties[name]["default"] = parameter.default
        self._hints.pop("return", None)
        unknown = next((name for name in described if name not in GIVEN), None)
        if unknown is not None:
            raise BadEnvironment(f"{self._where}: its docstring describes '{unknown}', which is not one of its parameters")
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _schema_of(self, name: str, parameter: inspect.Parameter) -> Schema:
        if parameter.kind in _UNNAMED:
            raise BadEnvironment(f"{self._where}: '{_UNNAMED[parameter.kind]}{name}' cannot be shown to a model, expected parameters with names")
        if name not in self._hints:
            raise BadEnvironment(f"{self._where}: '{name}' has no type; write {name}: str, for example")
        try:
            return type_schema(self._hints[name])
        except NoSchema as error:
            raise BadEnvironment(f"{self._where}: the type of '{name}' cannot be shown to a model: {error}") from error


def place_of(function: Any) -> str:
    """Returns the file and line of a function's definition, `FILE:LINE`, or its name if it is not defined in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return repr(function) if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))

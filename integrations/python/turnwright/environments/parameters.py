"""Python types as JSON Schema, and JSON values as Python types."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
import typing
from typing import Any

Schema = dict[str, Any]

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_UNIONS = (typing.Union, types.UnionType)


class NoSchema(Exception):
    """Raised for a type that JSON Schema cannot express. The message names the type."""


def type_schema(kind: Any) -> Schema:
    """Returns the JSON Schema of a type. References are replaced by their definitions, and titles are left out. Raises
    NoSchema.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return {**type_schema(inner[0]), **_annotations(inner[1:])}
    if origin is typing.Literal:
        return {**_type_of_values(inner), "enum": list(inner)}
    if origin in _UNIONS:
        return {"anyOf": [type_schema(one) for one in inner]}
    if kind is None or kind is type(None):
        return {"type": "null"}
    if kind is Any or kind is object:
        return {}
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind in _LISTS or origin in _LISTS:
        return {"type": "array", **({"items": type_schema(inner[0])} if inner else {})}
    if kind is tuple or origin is tuple:
        return _tuple_schema(inner)
    if kind is set or origin is set or kind is frozenset or origin is frozenset:
        return {"type": "array", "uniqueItems": True, **({"items": type_schema(inner[0])} if inner else {})}
    if kind in _MAPS or origin in _MAPS:
        if inner and inner[0] is not str:
            raise NoSchema(f"{_name(kind)} has keys of {_name(inner[0])}, expected str")
        return {"type": "object", **({"additionalProperties": type_schema(inner[1])} if inner else {})}
    if isinstance(kind, type):
        return _class_schema(kind)
    if isinstance(kind, typing.NewType):
        return type_schema(kind.__supertype__)
    raise NoSchema(f"{_name(kind)} has no JSON form")


def _class_schema(kind: type) -> Schema:
    if issubclass(kind, enum.Enum):
        values = [member.value for member in kind]
        return {**_type_of_values(values), "enum": values}
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        required = [name for name in hints if name in kind.__required_keys__]  # type: ignore[attr-defined]
        return _object({name: type_schema(_without_required(hint)) for name, hint in hints.items()}, required)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        required = [field.name for field in fields if _is_required(field)]
        return _object({field.name: type_schema(hints[field.name]) for field in fields}, required)
    if hasattr(kind, "model_json_schema"):
        return _inline(kind.model_json_schema())
    raise NoSchema(f"{_name(kind)} has no JSON form")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _without_required(hint: Any) -> Any:
    inner = typing.get_args(hint)
    return inner[0] if getattr(typing.get_origin(hint), "_name", "") in ("Required", "NotRequired") else hint


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _tuple_schema(inner: tuple[Any, ...]) -> Schema:
    if not inner:
        return {"type": "array"}
    if len(inner) == 2 and inner[1] is Ellipsis:
        return {"type": "array", "items": type_schema(inner[0])}
    return {"type": "array", "prefixItems": [type_schema(one) for one in inner], "minItems": len(inner), "maxItems": len(inner)}


def _type_of_values(values: Any) -> Schema:
    kinds = {bool if isinstance(value, bool) else type(value) for value in values}
    if not kinds <= {str, int, float, bool, type(None)}:
        raise NoSchema(f"{list(values)!r} are not all texts, numbers, booleans or None")
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": _SIMPLE[kind]} if kind in _SIMPLE else {}


# The attributes of annotated-types, which pydantic's `Field` and msgspec's `Meta` have too.
_BOUNDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf", "min_length": "minLength", "max_length": "maxLength", "pattern": "pattern",
}


def _annotations(notes: tuple[Any, ...]) -> Schema:
    """Returns the keywords of the notes of `Annotated[TYPE, …]`: a text describes, bounds of annotated-types limit."""
    found: Schema = {}
    for note in notes:
        if isinstance(note, str):
            found["description"] = note
            continue
        if isinstance(getattr(note, "description", None), str):
            found["description"] = note.description
        for part in (note, *(getattr(note, "metadata", None) or ())):
            for attribute, keyword in _BOUNDS.items():
                bound = getattr(part, attribute, None)
                if isinstance(bound, (int, float, str)):
                    found[keyword] = bound
    return found


def _inline(schema: Schema) -> Schema:
    """Returns pydantic's schema without titles and with each reference replaced by its definition."""
    definitions = schema.get("$defs", {})

    def clean(part: Any, open_names: tuple[str, ...]) -> Any:
        if isinstance(part, list):
            return [clean(one, open_names) for one in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if isinstance(reference, str):
            name = reference.rsplit("/", 1)[-1]
            if name in open_names:
                raise NoSchema(f"{name} contains itself")
            others = {key: value for key, value in part.items() if key != "$ref"}
            return clean({**definitions[name], **others}, (*open_names, name))
        return {key: _clean_member(key, value, open_names) for key, value in part.items() if not _is_title(key, value)}

    def _clean_member(key: str, value: Any, open_names: tuple[str, ...]) -> Any:
        if key == "properties" and isinstance(value, dict):
            return {name: clean(one, open_names) for name, one in value.items()}
        return clean(value, open_names)

    found = clean({key: value for key, value in schema.items() if key != "$defs"}, ())
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", False)
    return typing.cast(Schema, found)


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)


def to_python(value: Any, kind: Any) -> Any:
    """Returns a JSON value as the type that a tool declares: floats, enums, data classes and pydantic's models.

    Raises ValueError if the value does not fit, for example by a validator of pydantic.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return to_python(value, inner[0])
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if origin in _UNIONS:
        return _to_member(value, inner)
    if isinstance(value, list):
        return _to_collection(value, kind, origin, inner)
    if isinstance(value, dict) and origin in _MAPS and inner:
        return {key: to_python(one, inner[1]) for key, one in value.items()}
    if not isinstance(kind, type):
        return value
    if issubclass(kind, enum.Enum):
        return kind(value)
    if isinstance(value, dict) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return kind(**{name: to_python(one, hints[name]) for name, one in value.items()})
    if isinstance(value, dict) and typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: to_python(one, _without_required(hints.get(name, Any))) for name, one in value.items()}
    return kind.model_validate(value) if hasattr(kind, "model_validate") else value


def _to_collection(value: list[Any], kind: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    of_tuple = kind is tuple or origin is tuple
    if of_tuple and len(inner) > 0 and Ellipsis not in inner:
        return tuple(to_python(one, each) for one, each in zip(value, inner))
    items = [to_python(one, inner[0]) for one in value] if inner else value
    if of_tuple:
        return tuple(items)
    for collection in (set, frozenset):
        if kind is collection or origin is collection:
            return collection(items)
    return items


def _to_member(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Returns the value as the first member of a union that it fits."""
    for kind in kinds:
        if _is_of(value, kind):
            try:
                return to_python(value, kind)
            except (ValueError, TypeError, KeyError):
                continue
    return value


_JSON_TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None), "array": list, "object": dict,
}


def _is_of(value: Any, kind: Any) -> bool:
    schema = type_schema(kind)
    name = schema.get("type")
    if "enum" in schema:
        return value in schema["enum"]
    if name is None:
        return True
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)

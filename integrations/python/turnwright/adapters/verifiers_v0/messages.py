"""Messages of verifiers' old stack."""

from __future__ import annotations

from typing import Any


def to_plain(value: Any) -> Any:
    """Returns a value of pydantic models as plain values, without members that are None."""
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, dict):
        return {key: to_plain(member) for key, member in value.items() if member is not None}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def snapshot(message: Any) -> tuple[Any, ...]:
    """Returns the parts of a message that the model reads, so that they can be compared later. Cheap for texts."""
    content = message.content
    calls = getattr(message, "tool_calls", None) or ()
    return (
        message.role,
        content if isinstance(content, str) else to_plain(content),
        tuple((call.id, call.name, call.arguments) for call in calls),
    )


def prompt_fault(prompt: Any) -> str | None:
    """Returns the reason why a row's prompt cannot open an episode, or None."""
    expected = "expected a text of the user, after a text of the system or none: use the gateway"
    if not isinstance(prompt, list) or not all(isinstance(message, dict) for message in prompt):
        return f"its prompt is a {type(prompt).__name__} for a model without chat, {expected}"
    roles = [message.get("role") for message in prompt]
    if roles not in (["user"], ["system", "user"]):
        return f"its prompt has messages of {', '.join(map(str, roles)) or 'nobody'}, {expected}"
    if any(text_of(message.get("content")) is None for message in prompt):
        return f"its prompt has other content than text, {expected}"
    return None


def text_of(content: Any) -> Any:
    """Returns the text of a message's content. None if it has other parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in parts]
    return None if None in texts else "".join(map(str, texts))

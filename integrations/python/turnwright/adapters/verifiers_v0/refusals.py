"""The reasons why an environment of verifiers' old stack cannot be played turn by turn. They are found before a run.
"""

from __future__ import annotations

import inspect
from typing import Any
from urllib.parse import urlsplit

from .rewards import environments_of, rubrics_of

#: Modules whose classes build the model's history by appending to it.
_APPENDING = ("envs.multiturn_env", "envs.singleturn_env", "envs.environment")
#: Classes that play in a container or in a browser.
_CONTAINED = ("SandboxMixin", "SandboxEnv", "PythonEnv", "CliAgentEnv", "HarborEnv", "BrowserEnv", "OpenCodeEnv")
#: Texts in a class that asks the model itself.
_ASKING = ("get_model_response(", "get_response(", 'state["client"]', "state['client']")
#: Words that stand in place of a key.
_NO_KEYS = ("", "none", "empty", "dummy", "fake", "test", "no-key", "sk-none")


def find_refusals(name: str, environment: Any) -> list[str]:
    """Returns the reasons, each with the class or function and what to do. Empty if there are none."""
    found: list[str] = []
    for member in environments_of(environment):
        found += [f"{name} {reason}" for reason in _reasons(member)]
    return list(dict.fromkeys(found))


def _reasons(environment: Any) -> list[str]:
    from verifiers.envs.multiturn_env import MultiTurnEnv

    kind = type(environment)
    contained = next((base.__name__ for base in kind.__mro__ if base.__name__ in _CONTAINED), None)
    if contained is not None:
        return [f"needs a container ({_both(kind.__name__, contained)}): use the gateway"]
    if not isinstance(environment, MultiTurnEnv):
        return [f"has a rollout of its own ({kind.__name__}.rollout): use the gateway"]
    found = []
    for hook in ("rollout", "get_model_response"):
        if getattr(kind, hook) is not getattr(MultiTurnEnv, hook):
            found.append(f"has a rollout of its own ({kind.__name__}.{hook}): use the gateway")
    for hook in ("get_prompt_messages", "render_completion", "add_model_response"):
        owner = next(base for base in kind.__mro__ if hook in vars(base))
        if not owner.__module__.endswith(_APPENDING) or not owner.__module__.startswith("verifiers."):
            found.append(f"shows another history than was sampled ({owner.__name__}.{hook}): use the gateway")
    for base in kind.__mro__:
        if not base.__module__.startswith("verifiers.") and any(word in _source(base) for word in _ASKING):
            found.append(f"asks the model itself ({base.__name__}): use the gateway")
    for rubric in rubrics_of(environment.rubric):
        found += _reasons_of_rubric(rubric)
    return found


def _reasons_of_rubric(rubric: Any) -> list[str]:
    found = []
    objects = rubric.class_objects
    if "judge" in objects or any(base.__name__ == "JudgeRubric" for base in type(rubric).__mro__):
        client = getattr(rubric, "judge_client", None) or objects.get("judge_client")
        if not _has_key(client):
            model = getattr(rubric, "judge_model", None) or objects.get("judge_model") or type(rubric).__name__
            found.append(f"scores by a judge ({model}) and has no key for it: set OPENAI_API_KEY")
    for function in rubric._get_group_reward_funcs():
        found.append(f"compares the attempts at a task ({function.__name__}), and each is scored alone here: use the gateway")
    return found


def _has_key(client: Any) -> bool:
    """True for a client with a key, or with a server on this machine, which needs none."""
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname
    if host in ("localhost", "127.0.0.1", "::1"):
        return True
    return str(getattr(client, "api_key", None) or "").lower() not in _NO_KEYS


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def _both(kind: str, base: str) -> str:
    return kind if kind == base else f"{kind}, a {base}"

"""A tool that returns its text, in a state of a few hundred bytes."""

from turnwright import Environment

env = Environment("echo", policy="Echo.", tasks=[{"instruction": "Go."}])


@env.state
def state(task):
    return {"count": 0, "rows": {str(index): "x" * 20 for index in range(5)}}


@env.tool
def echo(text: str, state) -> str:
    """Return the text."""
    state["count"] += 1
    return text


@env.score
def score(state):
    return state["count"] > 0

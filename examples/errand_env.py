"""A shop whose customer reacts: it says more only when it is asked."""

from turnwright import Environment, Played, refuse

env = Environment("errand", repeatable=True, policy="You sell fruit. Ask how many the customer wants before you sell.")
env.tasks = {
    "train": [{"instruction": f"Buy {count} pears.", "count": count} for count in range(1, 9)],
    "test": [{"instruction": "Buy 9 pears.", "count": 9}],
}


@env.state
def state(task):
    return {"pears": 20, "sold": 0}


@env.tool(timeout=5)
async def sell(count: int, state, context) -> dict[str, int]:
    """Sell pears.

    Args:
        count: How many, at least 1.
    """
    if not 1 <= count <= state["pears"]:
        refuse(f"there are {state['pears']} pears")
    state["pears"] -= count
    state["sold"] += count
    return {"left": state["pears"]}


@env.user
def user(task, said: list[str]):
    if not said:
        return "I would like some pears."
    return f"{task['count']}, please." if "how many" in said[-1].lower() else None


@env.is_done
def is_done(state):
    return state["pears"] == 0


@env.score
def score(state, task, episode: Played):
    asked = any("how many" in text.lower() for text in episode.said)
    right = state["sold"] == task["count"]
    return {"components": {"sold": {"value": float(right), "weight": 1}, "asked": {"value": float(asked), "weight": 0.2}}}

from turnwright import Environment, refuse

START = {"attic": 0, "hall": 1, "kitchen": 2, "study": 3}
WISHES = {"train": [("hall", 3), ("attic", 10), ("hall", 7)], "test": [("kitchen", 5), ("study", 0)]}
env = Environment("my-environment", repeatable=True, policy="You look after lamps. Change only what you are asked to.")
env.tasks = {split: [{"instruction": f"Set the lamp of the {room} to {level}.", "room": room, "level": level}
                     for room, level in wishes] for split, wishes in WISHES.items()}

@env.state
def state(task): return {"levels": dict(START)}

@env.tool
def list_lamps(state) -> dict[str, int]:
    """List the rooms and the levels of their lamps."""
    return state["levels"]

@env.tool
def set_lamp(room: str, level: int, state):
    """Set the lamp of a room to a level from 0 (off) to 10."""
    if room not in START or not 0 <= level <= 10: refuse(f"the lamp of {room} cannot be set to {level}")
    state["levels"][room] = level

@env.score
def score(state, task):
    return {"wanted": {"levels": {**START, task["room"]: task["level"]}}}

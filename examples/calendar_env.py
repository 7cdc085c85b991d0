from typing import Annotated, Literal
from turnwright import Environment, refuse

Day = Literal["monday", "tuesday", "friday"]
env = Environment("calendar", policy="You keep a calendar. Each hour from 8 to 17 goes to one person.")
env.tasks = [{"instruction": f"{who} wants friday, as early as possible.", "who": who} for who in ("Ann", "Bo")]

@env.state
def state(task):
    return {"friday": {"8": "Cy", "9": "Cy"}, "monday": {}, "tuesday": {}}

@env.tool
def list_day(day: Day, state) -> dict[str, str]:
    """List who has which hour of a day."""
    return state[day]

@env.tool
def book(day: Day, hour: Annotated[int, "8 to 17"], who: str, state):
    """Book an hour."""
    if str(hour) in state[day] or not 8 <= hour <= 17: refuse(f"{day} {hour} is not free")
    state[day][str(hour)] = who

@env.score
def score(state, task):
    return {"wanted": {"friday": {"8": "Cy", "9": "Cy", "10": task["who"]}}}

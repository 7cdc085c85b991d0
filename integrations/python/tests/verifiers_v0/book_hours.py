"""An environment with tools that keep a state, for the old stack of verifiers."""

import verifiers as vf
from datasets import Dataset


def book(calendar: dict, day: str, hour: int) -> str:
    """Book an hour.

    Args:
        day: The day, such as monday.
        hour: 8 to 17.
    """
    if hour < 8 or hour > 17:
        raise ValueError("closed at that hour")
    if [day, hour] in calendar["taken"]:
        raise ValueError("that hour is taken")
    calendar["taken"].append([day, hour])
    return f"booked {day} at {hour}"


class Booking(vf.StatefulToolEnv):
    def __init__(self, **parts):
        super().__init__(**parts)
        self.add_tool(book, args_to_skip=["calendar"])

    async def setup_state(self, state):
        state["calendar"] = {"taken": [["monday", 9]]}
        return await super().setup_state(state)

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs):
        return dict(tool_args, calendar=state["calendar"])


def booked(state, answer) -> float:
    day, hour = answer.split()
    return 1.0 if [day, int(hour)] in state["calendar"]["taken"] else 0.0


def load_environment():
    rows = Dataset.from_list([{"question": "Book monday at 10.", "answer": "monday 10"}])
    return Booking(dataset=rows, rubric=vf.Rubric(funcs=[booked]), max_turns=5)

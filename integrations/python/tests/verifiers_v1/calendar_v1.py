"""A task set for the new stack of verifiers: tools with a state, rewards, a metric and a stop."""

import verifiers.v1 as vf

__all__ = ["CalendarTaskset"]


class CalendarState(vf.State):
    taken: list[tuple[str, int]] = [("monday", 9)]


class CalendarToolset(vf.Toolset[vf.ToolsetConfig, CalendarState]):
    TOOL_PREFIX = "calendar"

    @vf.tool
    async def book(self, day: str, hour: int) -> str:
        """Book an hour, 8 to 17."""
        wanted = (day, hour)
        if hour < 8 or hour > 17:
            raise ValueError("closed at that hour")
        if wanted in self.state.taken:
            return "that hour is taken"
        self.state.taken.append(wanted)
        return f"booked {day} at {hour}"

    @vf.tool
    def taken(self) -> list[str]:
        """List what is taken."""
        return [" ".join([day, str(hour)]) for day, hour in self.state.taken]


class CalendarData(vf.TaskData):
    day: str
    hour: int


class CalendarTask(vf.Task[CalendarData, CalendarState, vf.TaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [CalendarToolset(vf.ToolsetConfig())]

    @vf.stop
    async def enough(self, trace: vf.Trace) -> bool:
        return trace.num_turns > 5

    @vf.reward
    async def booked(self, trace) -> float:
        return 1.0 if (self.data.day, self.data.hour) in trace.state.taken else 0.0

    @vf.reward(weight=0.2)
    async def said_so(self, trace) -> float:
        return 1.0 if str(self.data.hour) in trace.last_reply else 0.0

    @vf.metric
    async def tool_results(self, trace) -> float:
        return float(len(trace.tool_messages))


class CalendarTaskset(vf.Taskset[CalendarTask, vf.TasksetConfig]):
    def load(self):
        for hour in (10, 11):
            prompts = {"prompt": f"Book monday at {hour}.", "system_prompt": "You keep a calendar."}
            yield CalendarTask(CalendarData(day="monday", hour=hour, **prompts), self.config.task)

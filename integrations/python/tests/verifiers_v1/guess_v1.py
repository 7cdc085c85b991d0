"""A task set for the new stack of verifiers, whose environment is the other speaker."""

import verifiers.v1 as vf

__all__ = ["GuessTaskset", "GuessEnv"]


class GuessData(vf.TaskData):
    secret: int


class GuessTask(vf.Task[GuessData, vf.State, vf.TaskConfig]):
    @vf.metric
    async def turns(self, trace) -> float:
        return float(trace.num_turns)


class GuessTaskset(vf.Taskset[GuessTask, vf.TasksetConfig]):
    def load(self):
        for secret in (42, 7):
            yield GuessTask(GuessData(prompt="Guess my number, 1 to 100.", secret=secret), self.config.task)


class GuessConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})


def hint(reply, secret):
    digits = "".join(one for one in reply if one.isdigit())
    if not digits:
        return "Say a number."
    if int(digits) == secret:
        return None
    return "Lower." if int(digits) > secret else "Higher."


class GuessEnv(vf.Env[GuessConfig]):
    async def run(self, task, agents):
        said = "Say a number."
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                said = hint(segment.last_reply, task.data.secret)
                if said is None or interaction.trace.num_turns >= 6:
                    break
                segment = await interaction.turn(said)
        interaction.trace.record_reward("solved", float(said is None))

"""An environment whose environment is the other speaker, for the old stack of verifiers."""

import verifiers as vf
from datasets import Dataset


class Guessing(vf.MultiTurnEnv):
    async def setup_state(self, state):
        state.update(secret=state["info"]["secret"], guesses=[])
        return state

    async def env_response(self, messages, state, **kwargs):
        digits = [one for one in messages[-1].content or "" if one.isdigit()]
        if not digits:
            return [vf.UserMessage(content="Say a number.")]
        state["guesses"].append(int("".join(digits)))
        if state["guesses"][-1] == state["secret"]:
            last = [vf.UserMessage(content="Right.")]
            state["final_env_response"] = last
            return last
        return [vf.UserMessage(content="Lower." if state["guesses"][-1] > state["secret"] else "Higher.")]

    @vf.stop
    async def gave_up(self, state):
        return any("give up" in (step["completion"][-1].content or "") for step in state["trajectory"][-1:])


def solved(state) -> float:
    return float(state["secret"] in state["guesses"][-1:])


def speed(state) -> float:
    return 1.0 / max(1, len(state["trajectory"]))


def load_environment(kind=Guessing, **more):
    rows = [{"question": "Guess my number, 1 to 100.", "info": {"secret": secret}} for secret in (42, 7)]
    rubric = vf.Rubric(funcs=[solved, speed], weights=[1.0, 0.5])
    return kind(dataset=Dataset.from_list(rows), rubric=rubric, max_turns=8, **more)

"""Environments for the old stack of verifiers that fail or that cannot be driven, by their name."""

import guess_number
import verifiers as vf
from datasets import Dataset

ROWS = [{"question": "Say a short word.", "answer": "so"}]


def single(rows=ROWS, **parts):
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), **parts)


class Forgetful(guess_number.Guessing):
    async def get_prompt_messages(self, state):
        messages = await super().get_prompt_messages(state)
        return [messages[0], messages[-1]]


class Asking(guess_number.Guessing):
    async def env_response(self, messages, state, **kwargs):
        said = await state["client"].get_response(messages, "policy", {})
        return [vf.UserMessage(content=said.message.content)]


class Rewriting(guess_number.Guessing):
    """Changes a message that the model has read."""

    async def env_response(self, messages, state, **kwargs):
        messages[0].content = "Guess another number."
        return await super().env_response(messages, state, **kwargs)


class HiddenAsking(guess_number.Guessing):
    async def env_response(self, messages, state, **kwargs):
        ask = getattr(state[self.name_of_client()], "get" + "_response")
        try:
            await ask(messages, "policy", {})
        except ValueError:
            pass
        return []

    def name_of_client(self):
        return "client"


class Seated(vf.Environment):
    async def rollout(self, input, client, model, sampling_args=None):
        raise NotImplementedError


class SandboxEnv(guess_number.Guessing):
    pass


class Boxed(SandboxEnv):
    pass


class Stopping(vf.ToolEnv):
    pass


def broken(completion) -> float:
    return {"so": 1.0}[completion[-1].content]


def forgotten(completion) -> float:
    pass


def rank(states) -> list[float]:
    return [0.0 for _ in states]


def look(place: str) -> str:
    """Look at a place.

    Args:
        place: Its name.
    """
    raise LookupError(f"no place {place}")


def load_judged():
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="EMPTY", base_url="https://judge.example/v1")
    rubric = vf.JudgeRubric(judge_client=client, judge_model="judge-7b")
    return single(rubric=rubric)


def load_unkeyed():
    return single(rubric=vf.JudgeRubric())


def load_unfetched():
    def fetch():
        raise ConnectionError("Couldn't reach 'someone/words' on the Hub")

    return vf.SingleTurnEnv(dataset=fetch, rubric=vf.Rubric(funcs=[broken]))


def load_locked():
    raise getattr(vf, "MissingKeyError")(["WORDS_TOKEN"])


def load_taught():
    shown = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    return single(few_shot=shown, rubric=vf.Rubric(funcs=[broken]))


def load_group():
    rubric = vf.Rubric(funcs=[broken])
    return vf.EnvGroup([guess_number.load_environment(), single(rubric=rubric)], ["guess", "word"])


KINDS = {
    "forgetful": lambda: guess_number.load_environment(Forgetful), "asking": lambda: guess_number.load_environment(Asking),
    "hidden-asking": lambda: guess_number.load_environment(HiddenAsking),
    "rewriting": lambda: guess_number.load_environment(Rewriting),
    "seated": lambda: Seated(dataset=Dataset.from_list(ROWS)), "boxed": lambda: guess_number.load_environment(Boxed),
    "judged": load_judged, "unkeyed": load_unkeyed, "unfetched": load_unfetched, "locked": load_locked,
    "taught": load_taught, "group": load_group,
    "ranked": lambda: single(rubric=vf.Rubric(funcs=[rank])), "broken": lambda: single(rubric=vf.Rubric(funcs=[broken])),
    "forgotten": lambda: single(rubric=vf.Rubric(funcs=[forgotten])),
    "named-alike": lambda: single(rubric=vf.RubricGroup([vf.Rubric(funcs=[solo(2.0)]), vf.Rubric(funcs=[solo(3.0)])])),
    "stopping": lambda: Stopping(dataset=Dataset.from_list(ROWS), tools=[look], stop_errors=[LookupError],
                                 rubric=vf.Rubric(funcs=[solo(1.0)])),
}


def solo(value):
    def same(completion) -> float:
        return value

    return same


def load_environment(kind):
    return KINDS[kind]()

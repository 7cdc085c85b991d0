"""The new stack of verifiers (from 0.4): the recordings, failed scores, and the reasons not to play."""

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest
from host_process import HostHere, HostProcess, RequestFailed, message_of, open_episode, play

HERE = Path(__file__).parent
FOLDER = HERE / "verifiers_v1"
RECORDED = json.loads((HERE / "recorded/verifiers-v1.json").read_text())["episodes"]
NAMES = ("calendar-v1", "guess-v1")


def missing():
    try:
        version = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        return "verifiers is not here: pip install 'verifiers>=0.4'"
    old = tuple(map(int, version.split(".")[:2])) < (0, 4)
    return f"verifiers {version} is here, and its new stack begins with 0.4" if old else None


pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

PLAIN = """
import verifiers.v1 as vf

__all__ = ["Words"]


class Data(vf.TaskData):
    answer: str = "so"


class Talk(vf.Task[Data, vf.State, vf.TaskConfig]):
    # in the task

    @vf.reward
    async def right(self, trace) -> float:
        return {"so": 1.0}[trace.last_reply]


class Words(vf.Taskset[Talk, vf.TasksetConfig]):
    def load(self):
        yield Talk(Data(prompt="Say a short word."), self.config.task)

# after all
"""
IN_TASK = {
    "boxed": ("    NEEDS_CONTAINER = True", "needs a container (Talk): use the gateway"),
    "prepared": ("    async def setup(self, trace, runtime):\n        pass", "reads the runtime (Talk.setup): use the gateway"),
    "scored": ("    async def score(self, trace, runtime=None):\n        pass",
               "has a score of its own (Talk.score): use the gateway"),
    "running": ("    @vf.reward\n    async def ran(self, trace, runtime) -> float:\n        return 1.0",
                "reads the runtime (ran): use the gateway"),
    "rewriting": ("    @vf.intercept\n    async def soften(self, request: vf.Request):\n        return None",
                  "shows another history than was sampled (soften): use the gateway"),
    "watching": ("    @vf.stop\n    async def rude(self, response: vf.Response) -> bool:\n        return False",
                 "stops within a request (rude): use the gateway"),
}
AFTER = {
    "pair": ("""
class PairConfig(vf.EnvConfig):
    asker: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})
    teller: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})


class Pair(vf.Env[PairConfig]):
    async def run(self, task, agents):
        pass


__all__ += ["Pair"]
""", "has 2 agents (asker, teller): use the gateway"),
    "harnessed": ("""
class OneConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "codex"})


class One(vf.Env[OneConfig]):
    async def run(self, task, agents):
        await agents.agent.run(task)


__all__ += ["One"]
""", "plays through a harness of its own (codex): use the gateway"),
    "endless": ("Words.INFINITE = True",
                'has endless tasks: give their number, as in --env-args \'{"limit": 100}\''),
}
BEST_OF_TWO = """
class TwiceConfig(vf.EnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, max_turns=3)


class Twice(vf.Env[TwiceConfig]):
    async def run(self, task, agents):
        await agents.agent.run(task)
        await agents.agent.run(task)


__all__ += ["Twice"]
"""
JUDGED = """
class JudgedConfig(vf.TaskConfig):
    judge: vf.JudgeConfig = vf.JudgeConfig(model="judge-7b", base_url="https://judge.example/v1", api_key_var="JUDGE_7B_KEY")


class Judged(vf.Task[Data, vf.State, JudgedConfig]):
    pass


class JudgedWords(vf.Taskset[Judged, vf.TasksetConfig]):
    def load(self):
        yield Judged(Data(prompt="Say a short word."))


__all__ = ["JudgedWords"]
"""
OLD = "import verifiers as vf\n\n\nclass Words(vf.SingleTurnEnv):\n    pass\n"
LOADING = "def load_environment():\n    return None\n"


def test_an_absent_package_is_named():
    with HostProcess() as host, pytest.raises(RequestFailed) as caught:
        host.ask("load", env="verifiers:no-such-package", args={})
    assert caught.value.facts["missing"] == "no_such_package"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with one module for each strange task set."""
    folder = tmp_path_factory.mktemp("written")
    sources = {name: PLAIN.replace("    # in the task", text) for name, (text, _) in IN_TASK.items()}
    sources |= {name: PLAIN.replace("# after all", text) for name, (text, _) in AFTER.items()}
    sources |= {"words": PLAIN, "twice": PLAIN.replace("# after all", BEST_OF_TWO), "old_classes": OLD, "old_loader": LOADING,
                "judged": PLAIN.replace("# after all", JUDGED)}
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    return folder


@pytest.fixture(scope="module")
def host(written):
    with HostProcess(FOLDER, written) as process:
        yield process


@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_reproduces_the_recordings(host, name):
    facts = host.ask("load", env=f"verifiers:{name}", args={})
    assert (facts["name"], facts["kind"], facts["user"], facts["splits"]) == (name, "turns", "none", {"train": 2})
    for recorded in [one for one in RECORDED if one["taskset"] == name]:
        script = recorded["script"]
        opening, answers, score = play(host, "train", recorded["index"], script)
        tools = [{key: tool[key] for key in ("name", "description", "parameters")} for tool in recorded["tools"]]
        assert facts["tools"] == tools and "tools" not in opening
        played = opening["messages"]
        for turn, (said, answer) in enumerate(zip(script, answers)):
            played = [*played, message_of(said, turn), *answer["messages"]]
        assert [comparable(message) for message in played] == [comparable(message) for message in recorded["messages"]]
        assert [bool(answer.get("done")) for answer in answers] == [False] * (len(script) - 1) + [True]
        assert answers[-1]["done"] == score["details"]["stop_condition"] == recorded["stop"]
        assert score["reward"] == recorded["reward"]
        rewards = {key: {"value": one["score"], "weight": one["weight"]} for key, one in recorded["rewards"].items()}
        metrics = {key: {"value": value, "weight": 0.0} for key, value in recorded["metrics"].items()}
        assert score["components"] == {**rewards, **metrics}
        assert host.ask("close", episode="1") == {}


def comparable(message):
    calls = [(call["id"], call["name"], call["arguments"]) for call in message.get("tool_calls") or []]
    return message["role"], message.get("content") or None, message.get("tool_call_id"), calls


def test_the_state_of_an_attempt_is_as_recorded(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for recorded in RECORDED:
        with HostHere() as here:
            here.ask("load", env=f"verifiers:{recorded['taskset']}", args={})
            play(here, "train", recorded["index"], recorded["script"])
            trace = here.episode("1").trace
            assert trace.state.model_dump(mode="json") == recorded["state"]
            assert (trace.num_turns, trace.ok) == (recorded["turns"], recorded["ok"])
            assert trace.usage.completion_tokens == 5 * recorded["turns"]


@pytest.mark.parametrize("name", [*IN_TASK, *AFTER])
def test_a_task_set_that_cannot_be_driven_is_refused_with_the_reason(host, name):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env=f"verifiers:{name}", args={})
    reason = {**IN_TASK, **AFTER}[name][1]
    assert (caught.value.facts["code"], str(caught.value)) == ("refused", f"{name} {reason}")


def test_a_judge_without_a_key_is_refused(host):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env="verifiers:judged", args={})
    assert str(caught.value) == "judged scores by a judge (judge-7b) and has no key for it: set JUDGE_7B_KEY"


@pytest.mark.parametrize("name", ["old-classes", "old-loader"])
def test_a_package_for_the_old_stack_is_refused_with_both_versions(host, name):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env=f"verifiers:{name}", args={})
    shown = metadata.version("verifiers")
    assert str(caught.value) == f'{name} is made for verifiers before 0.4, and here is {shown}: pip install "verifiers<0.4"'


def test_endless_tasks_are_limited_by_an_argument(host):
    assert host.ask("load", env="verifiers:endless", args={"limit": 1})["splits"] == {"train": 1}


def test_arguments_that_no_configuration_has_are_refused(host):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env="verifiers:words", args={"size": 3})
    assert str(caught.value) == "words cannot be created with these arguments: size: Extra inputs are not permitted"


def test_a_reward_that_fails_is_a_failed_score_with_its_line(host, written):
    host.ask("load", env="verifiers:words", args={})
    assert play(host, "train", 0, [{"content": "so"}], name="good")[2]["reward"] == 1.0
    with pytest.raises(RequestFailed) as caught:
        play(host, "train", 0, [{"content": "no"}])
    facts = caught.value.facts
    line = (written / "words.py").read_text().splitlines()[facts["line"] - 1].strip()
    assert (facts["type"], facts["file"], line) == (
        "KeyError", str(written / "words.py"), 'return {"so": 1.0}[trace.last_reply]')
    host.ask("close", episode="1")
    host.ask("close", episode="good")


def test_an_attempt_that_was_cut_off_is_scored_as_it_is(host):
    host.ask("load", env="verifiers:guess-v1", args={})
    open_episode(host, "train", 0)
    host.ask("turn", episode="1", message=message_of({"content": "50"}, 0), finish="stop")
    score = host.ask("score", episode="1", outcome={"isDone": False})
    assert score["details"]["stop_condition"] == "cut_off"
    assert score["components"] == {"solved": {"value": 0.0, "weight": 1.0}, "turns": {"value": 1.0, "weight": 0.0}}
    host.ask("close", episode="1")


def test_an_attempt_can_be_closed_before_it_is_over(host):
    host.ask("load", env="verifiers:guess-v1", args={})
    open_episode(host, "train", 0)
    assert host.ask("close", episode="1") == {}


def test_a_second_attempt_within_an_episode_fails_it(host):
    host.ask("load", env="verifiers:twice", args={})
    with pytest.raises(RequestFailed) as caught:
        play(host, "train", 0, [{"content": "so"}])
    assert (caught.value.facts["code"], str(caught.value)) == (
        "environment/bad-step", "Twice began a second attempt of its agent, expected one an episode")
    host.ask("close", episode="1")

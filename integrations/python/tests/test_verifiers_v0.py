"""The old stack of verifiers (0.1.14 to 0.3): the recordings, failed scores, and the reasons not to play."""

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from host_process import HostHere, HostProcess, RequestFailed, message_of, open_episode, play

HERE = Path(__file__).parent
FOLDER = HERE / "verifiers_v0"
RECORDED = json.loads((HERE / "recorded/verifiers-v0.json").read_text())["episodes"]
MODULES = {"tool": "measure_lengths", "multi_turn": "guess_number", "stateful": "book_hours"}


def missing():
    try:
        version = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        return "verifiers is not here: pip install 'verifiers<0.4'"
    new = tuple(map(int, version.split(".")[:2])) >= (0, 4)
    return f"verifiers {version} is here, and its old stack is before 0.4" if new else None


pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@pytest.fixture(scope="module")
def host():
    with HostProcess(FOLDER) as process:
        yield process


def without_none(value):
    if isinstance(value, dict):
        return {key: without_none(member) for key, member in value.items() if member is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", MODULES)
def test_the_protocol_reproduces_the_recordings(host, name):
    facts = host.ask("load", env=f"verifiers:{MODULES[name]}", args={})
    assert (facts["name"], facts["kind"], facts["user"]) == (MODULES[name], "turns", "none")
    assert facts["packages"]["verifiers"] == metadata.version("verifiers")
    for recorded in [one for one in RECORDED if one["environment"] == name]:
        index, script = recorded["row"]["example_id"], recorded["script"]
        opening, answers, score = play(host, "train", index, script)
        tools = [{key: tool[key] for key in ("name", "description", "parameters")} for tool in recorded["tools"]]
        assert facts["tools"] == tools and "tools" not in opening
        shown = [opening["messages"], *(answer["messages"] for answer in answers)]
        assert shown[: len(recorded["asked"])] == recorded["asked"]
        assert [bool(answer.get("done")) for answer in answers] == [False] * (len(script) - 1) + [True]
        said = [message_of(one, turn) for turn, one in enumerate(script)]
        completion = [one for message, more in zip(said, shown[1:]) for one in [message, *more]]
        assert without_none(completion) == recorded["completion"]
        assert answers[-1]["done"] == score["details"]["stop_condition"] == recorded["stop_condition"]
        assert score["details"]["is_truncated"] is recorded["is_truncated"]
        assert score["reward"] == recorded["reward"]
        assert {key: one["value"] for key, one in score["components"].items()} == recorded["metrics"]
        total = sum(one["value"] * one["weight"] for one in score["components"].values())
        assert total == pytest.approx(recorded["reward"], abs=1e-12)
        assert host.ask("close", episode="1") == {}


def test_state_and_usage_of_an_attempt_are_as_recorded(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    for recorded in RECORDED:
        with HostHere() as here:
            here.ask("load", env=f"verifiers:{MODULES[recorded['environment']]}", args={})
            play(here, "train", recorded["row"]["example_id"], recorded["script"])
            state = here.episode("1").state
            assert {key: state[key] for key in recorded["state"]} == recorded["state"]
            assert dict(state["usage"]) == recorded["usage"]
            assert len(state["trajectory"]) == recorded["turns"]


def refusal_of(host, kind):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env="verifiers:strange-parts", args={"kind": kind})
    assert caught.value.facts["code"] == "refused"
    return str(caught.value)


@pytest.mark.parametrize(("kind", "reason"), [
    ("forgetful", "strange-parts shows another history than was sampled (Forgetful.get_prompt_messages): use the gateway"),
    ("asking", "strange-parts asks the model itself (Asking): use the gateway"),
    ("seated", "strange-parts has a rollout of its own (Seated.rollout): use the gateway"),
    ("boxed", "strange-parts needs a container (Boxed, a SandboxEnv): use the gateway"),
    ("judged", "strange-parts scores by a judge (judge-7b) and has no key for it: set OPENAI_API_KEY"),
    ("ranked", "strange-parts compares the attempts at a task (rank), and each is scored alone here: use the gateway"),
    ("unfetched", "strange-parts could not load its data (ConnectionError: Couldn't reach 'someone/words' on the Hub): "
                  "fetch someone/words where there is network"),
    ("locked", "strange-parts has no key: set WORDS_TOKEN"),
])
def test_an_environment_that_cannot_be_driven_is_refused_with_the_reason(host, kind, reason):
    assert refusal_of(host, kind) == reason


@pytest.mark.skipif("OPENAI_API_KEY" in os.environ, reason="OPENAI_API_KEY is set here")
def test_a_judge_that_is_created_without_a_key_is_refused(host):
    reason = "strange-parts scores by a judge and has no key for it: set OPENAI_API_KEY"
    assert refusal_of(host, "unkeyed") == reason


def test_a_prompt_with_other_roles_is_refused_with_its_task(host):
    assert refusal_of(host, "taught") == (
        'task 0 of split "train": its prompt has messages of user, assistant, user, expected a text of the user, after a '
        "text of the system or none: use the gateway")


@pytest.mark.parametrize(("kind", "type_", "message", "line"), [
    ("broken", "KeyError", "'no'", 'return {"so": 1.0}[completion[-1].content]'), ("forgotten", "TypeError", "float()", None)])
def test_a_reward_function_that_fails_is_a_failed_score(host, kind, type_, message, line):
    host.ask("load", env="verifiers:strange-parts", args={"kind": kind})
    with pytest.raises(RequestFailed) as caught:
        play(host, "train", 0, [{"content": "no"}])
    facts = caught.value.facts
    assert facts["type"] == type_ and message in facts["message"]
    if line is not None:
        file = FOLDER / "strange_parts.py"
        assert (facts["file"], file.read_text().splitlines()[facts["line"] - 1].strip()) == (str(file), line)
    host.ask("close", episode="1")


def test_an_attempt_that_was_cut_off_is_scored_with_an_empty_last_message(host):
    host.ask("load", env="verifiers:guess-number", args={})
    open_episode(host, "train", 0)
    score = host.ask("score", episode="1", outcome={"isDone": False})
    assert score["details"] == {"stop_condition": None, "is_truncated": True}
    assert score["reward"] == 0.5
    host.ask("close", episode="1")


def test_functions_of_one_name_count_as_one_component(host):
    host.ask("load", env="verifiers:strange-parts", args={"kind": "named-alike"})
    _, _, score = play(host, "train", 0, [{"content": "so"}])
    assert score["components"]["same"] == {"value": 5.0, "weight": 1.0} and score["reward"] == 5.0
    host.ask("close", episode="1")


def test_a_group_plays_each_task_in_its_member(host):
    facts = host.ask("load", env="verifiers:strange-parts", args={"kind": "group"})
    assert facts["splits"] == {"train": 3}
    _, answers, score = play(host, "train", 1, [{"content": "7"}])
    assert (answers[0]["done"], score["reward"]) == ("has_final_env_response", 1.5)
    host.ask("close", episode="1")
    _, answers, score = play(host, "train", 2, [{"content": "so"}])
    assert (answers[0]["done"], score["reward"]) == ("max_turns_reached", 1.0)
    host.ask("close", episode="1")


def test_an_error_that_the_environment_stops_at_ends_the_attempt_with_its_score(host):
    host.ask("load", env="verifiers:strange-parts", args={"kind": "stopping"})
    calls = [{"name": "look", "arguments": '{"place": "here"}'}]
    _, answers, score = play(host, "train", 0, [{"content": "", "tool_calls": calls}])
    assert (answers[0]["done"], score["reward"]) == ("has_error", 1.0)
    host.ask("close", episode="1")


@pytest.mark.parametrize(("kind", "code", "message"), [
    ("rewriting", "environment/bad-step",
     "Rewriting shows the model another history than it had, expected the same messages"),
    ("hidden-asking", "environment/exception", "HiddenAsking asked the model itself, expected to be asked")])
def test_what_is_seen_in_play_alone_fails_the_episode(host, kind, code, message):
    host.ask("load", env="verifiers:strange-parts", args={"kind": kind})
    with pytest.raises(RequestFailed) as caught:
        play(host, "train", 0, [{"content": "50"}])
    assert (caught.value.facts["code"], str(caught.value)) == (code, message)
    host.ask("close", episode="1")


def test_a_new_package_is_refused_with_the_version(host):
    with pytest.raises(RequestFailed) as caught:
        host.ask("load", env="verifiers:json", args={})
    shown = metadata.version("verifiers")
    assert str(caught.value) == (
        f'json has no load_environment(), as verifiers from 0.4 wants it, and here is {shown}: pip install "verifiers>=0.4"')

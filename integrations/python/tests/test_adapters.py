"""The adapters of five libraries: what they gave for fixed texts (as hashes), played through the host twice."""

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest
from host_process import HostProcess, RequestFailed, play

RECORDED = json.loads((Path(__file__).parent / "recorded/libraries.json").read_text())
TWO = {"size": 2, "test_size": 0}
#: Module, package, environment, arguments, and the model's texts, by library.
LIBRARIES = {
    "reasoning-gym": ("reasoning_gym", "reasoning-gym", "leg_counting", {**TWO, "seed": 42}, ["100"]),
    "gem": ("gem", "gem-llm", "game:GuessTheNumber-v0-easy", TWO, [f"\\boxed{{{number}}}" for number in (5, 3, 8, 2, 7)]),
    "textarena": ("textarena", "textarena", "GuessTheNumber-v0", TWO, [f"[{number}]" for number in (10, 5, 15, 3, 8)]),
    "gymnasium": ("gymnasium", "gymnasium[toy-text]", "FrozenLake-v1",
                  {**TWO, "options": {"is_slippery": False}, "keep_colors": True},
                  ["down", "jump", "down", "right", "right", "down", "right"]),
    "skyrl-gym": ("skyrl_gym", "skyrl-gym", "gsm8k_multi_turn",
                  {"rows": [{"question": "What is 2+3?", "answer": "5"}]}, ["Perhaps.", "#### 5"]),
}


def require(library):
    module, package = LIBRARIES[library][:2]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{library} is not here: pip install '{package}'")


def digest(messages, library):
    if not messages:
        return None
    text = json.dumps(messages, ensure_ascii=False) if library == "skyrl-gym" else messages[-1]["content"]
    return {"sha256": hashlib.sha256(text.encode()).hexdigest()[:16], "characters": len(text)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adapter_gives_what_was_recorded_each_time(library):
    require(library)
    _, _, name, args, texts = LIBRARIES[library]
    with HostProcess() as host:
        facts = host.ask("load", env=f"{library}:{name}", args=args)
        (split,) = facts["splits"]
        assert (facts["kind"], facts["repeatable"], facts["splits"][split]) == ("turns", True, len(RECORDED[library]))
        for name in ("first", "again"):
            for index, recorded in enumerate(RECORDED[library]):
                script = [{"content": text} for text in texts]
                opening, answers, score = play(host, split, index, script, name=name)
                shown = [opening["messages"], *(answer["messages"] for answer in answers)]
                seen = [digest(messages, library) for messages in shown]
                steps = recorded["steps"]
                assert [step["text"] for step in steps] == texts[: len(answers)]
                assert seen == [*(step["shown"] for step in steps), recorded["last"]]
                assert answers[-1]["done"] is recorded["done"]
                assert score["reward"] == recorded["reward"]
                host.ask("close", episode=name)


@pytest.mark.parametrize("library", ["gem", "textarena"])
def test_episodes_that_draw_process_wide_numbers_do_not_disturb_each_other(library):
    require(library)
    _, _, name, args, texts = LIBRARIES[library]
    with HostProcess() as host:
        host.ask("load", env=f"{library}:{name}", args=args)
        for index in (0, 1):
            host.ask("open", episode=str(index), split="train", index=index)
        answers = {0: [], 1: []}
        for text in texts:
            for index in (0, 1):
                if not (answers[index] and answers[index][-1]["done"]):
                    message = {"role": "assistant", "content": text}
                    answers[index].append(host.ask("turn", episode=str(index), message=message, finish="stop"))
        for index, recorded in enumerate(RECORDED[library]):
            seen = [digest(answer["messages"], library) for answer in answers[index]]
            assert seen == [*(step["shown"] for step in recorded["steps"][1:]), recorded["last"]]


REFUSALS = [
    ("reasoning-gym", "leg_count", {}, "reasoning-gym has no environment leg_count, did you mean leg_counting or rectangle_count or letter_counting?"),
    ("gem", "game:Guess", {}, "gem has no environment game:Guess"),
    ("textarena", "Chess-v0", {}, "Chess-v0 is a game of several players (The number of players has to be 2, received 1), "
                                  "expected one for a single player"),
    ("gymnasium", "CartPole-v1", {}, "CartPole-v1 has 2 actions, and words for 0 of them: name each, as in "
                                     '--env-args \'{"actions": ["left", "right"]}\''),
    ("gymnasium", "Pendulum-v1", {}, "Pendulum-v1 has actions that are no numbers (Box(-2.0, 2.0, (1,), float32)): "
                                     "write an adapter for it"),
    ("skyrl-gym", "gsm8k", {}, "gsm8k plays rows of yours: give them, as in --env-args "
                               '\'{"rows": [{"question": "What is 2+3?", "answer": "5"}]}\', or their "file"'),
    ("skyrl-gym", "gsm8k", {"rows": [{"text": "?"}]}, "a row has text, expected question and answer, or prompt and reward_spec"),
]


@pytest.mark.parametrize(("library", "name", "args", "reason"), REFUSALS)
def test_a_name_that_cannot_be_played_is_refused_with_what_to_do(library, name, args, reason):
    require(library)
    with HostProcess() as host:
        with pytest.raises(RequestFailed) as caught:
            host.ask("load", env=f"{library}:{name}", args=args)
    assert caught.value.facts["code"] == "refused"
    assert str(caught.value).startswith(reason)


def test_a_colored_letter_stands_in_brackets():
    require("gymnasium")
    with HostProcess() as host:
        host.ask("load", env="gymnasium:FrozenLake-v1", args={"options": {"is_slippery": False}})
        opening = host.ask("open", episode="1", split="train", index=0)
    assert opening["messages"][0]["content"] == "Reach G. Say left, down, right or up.\n\n[S]FFF\nFHFH\nFFFH\nHFFG\n"


def test_rows_of_a_file_are_played(tmp_path):
    require("skyrl-gym")
    file = tmp_path / "rows.jsonl"
    prompt = [{"role": "system", "content": "Count."}, {"role": "user", "content": "2+3?"}]
    file.write_text(json.dumps({"prompt": prompt, "reward_spec": {"method": "rule", "ground_truth": "5"}}) + "\n")
    with HostProcess() as host:
        host.ask("load", env="skyrl-gym:gsm8k", args={"file": str(file)})
        opening, answers, score = play(host, "test", 0, [{"content": "#### 5"}])
    assert (opening["messages"], answers, score["reward"]) == (prompt, [{"messages": [], "done": True}], 1.0)

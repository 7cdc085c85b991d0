"""The components of a reward, as trainers take them."""

from turnwright.adapters.component_name import component_name
from turnwright.adapters.verifiers_v0.rewards import describe_rewards
from turnwright.attempt import Attempt
from turnwright.trainers.trl_groups import component_columns
from turnwright.trainers.trl_rewards import env_component, env_reward


def attempt(**about):
    return Attempt("t#0", "completed", "finished", 1.0, [], about)


def test_an_attempt_has_the_values_of_its_components():
    parts = {"state": {"value": 1.0, "weight": 0.75}, "style": {"value": 0.5, "weight": 0.5}}
    assert attempt(rewardComponents=parts).components == {"state": 1.0, "style": 0.5}
    assert attempt().components == {}


def test_trl_has_a_column_and_a_reward_function_for_each_component():
    columns = component_columns([{"state": 1.0}, {"state": 0.0, "style": 0.5}, {}])
    assert columns == {"env_reward_state": [1.0, 0.0, None], "env_reward_style": [None, 0.5, None]}
    style = env_component("style")
    assert style.__name__ == "env_style"
    assert style(["a", "b", "c"], **columns) == [None, 0.5, None]
    assert env_component("tone")(["a", "b", "c"], **columns) == [None, None, None]
    assert env_reward(["a"], [1.0]) == [1.0]
    assert component_columns([{}, {}]) == {}


def test_no_component_has_a_name_for_the_whole_reward():
    names = ["reward", "total", "style", "reward_function"]
    assert [component_name(name, names) for name in names] == ["reward_function_function", "total_function", "style",
                                                               "reward_function"]


def test_a_rubric_that_scores_in_its_own_way_has_one_component_beside_its_metrics():
    class Rubric:
        funcs: list = []
        weights: list = []

    assert describe_rewards(Rubric(), 2.0, {"reward": 1.0, "turns": 3.0}) == {"reward": 2.0, "components": {
        "reward_function": {"value": 1.0, "weight": 0.0}, "turns": {"value": 3.0, "weight": 0.0},
        "rubric": {"value": 2.0, "weight": 1.0}}}
    assert describe_rewards(Rubric(), 2.0, {"rubric": 1.0})["components"] == {
        "rubric": {"value": 1.0, "weight": 0.0}, "rubric_reward": {"value": 2.0, "weight": 1.0}}

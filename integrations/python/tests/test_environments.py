"""Environments that are defined in Python: schemas of tools, arguments, state, users and scores."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from turnwright import BadEnvironment, Context, Environment, Refused, TextEnvironment, TextEpisode, refuse
from turnwright.environments.docstring import read_docstring
from turnwright.environments.errors import BadResult
from turnwright.environments.episode import OwnEpisode, OwnUser
from turnwright.environments.load import load_environment
from turnwright.environments.parameters import NoSchema, to_python, type_schema
from turnwright.environments.tool import Tool
from turnwright.host.hosted import TextHosted, host_environment
from turnwright.host.randomness import Randomness
from turnwright.host.requests import Requests


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Item:
    name: str
    price: float
    count: int = 1


class Place(TypedDict, total=False):
    city: str


@dataclasses.dataclass(frozen=True)
class Bound:
    ge: int


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, "b"], {"enum": [1, "b"]}),
        (Annotated[int, "8 to 17"], {"type": "integer", "description": "8 to 17"}),
        (Annotated[int, Bound(8)], {"type": "integer", "minimum": 8}),
        (Optional[float], {"anyOf": [{"type": "number"}, {"type": "null"}]}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (set[int], {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Any, {}),
    ],
)
def test_schemas_of_types(kind: Any, schema: Any) -> None:
    assert type_schema(kind) == schema


def test_schemas_of_classes() -> None:
    assert type_schema(Item) == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "number"}, "count": {"type": "integer"}},
        "required": ["name", "price"],
        "additionalProperties": False,
    }
    assert type_schema(Place)["required"] == []


@pytest.mark.parametrize("kind", [bytes, dict[int, str], type(refuse), Literal[b"x"]])
def test_types_without_a_schema_are_refused(kind: Any) -> None:
    with pytest.raises(NoSchema):
        type_schema(kind)


def test_schemas_of_pydantic_models_have_no_titles_and_references() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not here: pip install pydantic")
    inner = pydantic.create_model("Inner", title=(str, "x"))
    outer = pydantic.create_model("Outer", inner=(inner, ...), count=(int, pydantic.Field(ge=1, description="how many")))
    assert type_schema(outer) == {
        "type": "object",
        "properties": {
            "inner": {"type": "object", "properties": {"title": {"default": "x", "type": "string"}}},
            "count": {"type": "integer", "minimum": 1, "description": "how many"},
        },
        "required": ["inner", "count"],
        "additionalProperties": False,
    }
    assert to_python({"inner": {"title": "y"}, "count": 2}, outer).inner.title == "y"


def test_arguments_get_their_types() -> None:
    assert to_python([{"name": "a", "price": 2}], list[Item]) == [Item("a", 2.0)]
    assert isinstance(to_python(3, float), float)
    assert to_python("blue", Color) is Color.BLUE
    assert to_python(None, Optional[Item]) is None
    assert to_python([1, 1], set[int]) == {1}
    assert to_python([1, 2], tuple[int, float]) == (1, 2.0)


def test_docstrings_are_read() -> None:
    def book() -> None:
        """Book an hour.

        More about it.

        Args:
            day (str): The day,
                such as monday.
            hour: 8 to 17

        Returns:
            Nothing.
        """

    assert read_docstring(book) == (
        "Book an hour.\n\nMore about it.", {"day": "The day, such as monday.", "hour": "8 to 17"},
    )


def test_a_tool_hides_what_it_is_given() -> None:
    def book(day: str, state: Any, context: Any, hour: int = 9) -> None:
        """Book."""

    tool = Tool(book)
    assert tool.given == ["state", "context"]
    assert tool.parameters == {
        "type": "object",
        "properties": {"day": {"type": "string"}, "hour": {"type": "integer", "default": 9}},
        "required": ["day"],
        "additionalProperties": False,
    }


def test_mistakes_of_authors_are_named() -> None:
    env = Environment("e", tasks=[{"instruction": "x"}])
    place = f"{__file__}:"

    def untyped(day) -> None:  # type: ignore[no-untyped-def]
        """Book."""

    def described(day: str) -> None:
        """Book.

        Args:
            hour: which
        """

    def packed(*days: str) -> None:
        """Book."""

    def unshown(data: bytes) -> None:
        """Book."""

    for function, problem in [
        (untyped, "'day' has no type; write day: str, for example"),
        (described, "its docstring describes 'hour', which is not one of its parameters"),
        (packed, "'*days' cannot be shown to a model, expected parameters with names"),
        (unshown, "the type of 'data' cannot be shown to a model: bytes has no JSON form"),
    ]:
        with pytest.raises(BadEnvironment) as raised:
            env.tool(function)
        assert str(raised.value).startswith(place)
        assert str(raised.value).endswith(f"{function.__name__}(): {problem}")
    with pytest.raises(BadEnvironment, match="asks for 'world', expected some of state, task, episode"):
        env.score(lambda world: 1)
    with pytest.raises(AttributeError, match="an environment has no part 'reward'"):
        env.reward  # noqa: B018
    with pytest.raises(AttributeError, match="an environment has no setting 'tools', expected tasks or policy"):
        env.tools = []
    with pytest.raises(BadEnvironment, match="the name is 'my shop', expected letters"):
        Environment("my shop")
    with pytest.raises(BadEnvironment, match="the policy is 5, expected a text, or a function of the task"):
        Environment("e", policy=5)  # type: ignore[arg-type]
    with pytest.raises(BadEnvironment, match="a tool is a partial, expected a function"):
        env.tool(functools.partial(untyped, day=1))
    with pytest.raises(BadEnvironment, match=r"<lambda>\(\): expected a name of letters"):
        env.tool(lambda: 1)
    with pytest.raises(BadEnvironment, match="timeout is '5', expected seconds above 0"):
        env.tool(timeout="5")(make_shop)


@pytest.mark.parametrize(("source", "problem"), [
    ("def create_environment(size): pass", ":1: create_environment() cannot take the arguments {} (missing a required argument: 'size')"),
    ("def create_environment(): pass", ":1: create_environment() returned None (a forgotten return?), expected an environment"),
])
def test_a_function_that_creates_no_environment_is_named(tmp_path: Any, source: str, problem: str) -> None:
    file = tmp_path / "created_env.py"
    file.write_text(source)
    with pytest.raises(BadEnvironment) as raised:
        load_environment(str(file), {})
    assert str(raised.value).startswith(f"{file}{problem}")


def test_a_text_episode_that_lacks_a_part_is_named() -> None:
    class Half(TextEpisode):
        def step(self, text: str) -> Any:
            return 5, True

    class Whole(Half):
        def score(self) -> Any:
            return 1

    class Game(TextEnvironment):
        def tasks(self) -> Any:
            return [{"instruction": "x", "kind": None}, {"instruction": "y", "when": object()}]

        def open(self, task: Any, seed: int) -> Any:
            return task

    hosted = TextHosted(Game())
    for opened, problem in [
        (None, "open() returned a NoneType, which has no step(), expected an episode with step() and score()"),
        (Half(), "open() returned a Half, which has no score(), expected an episode with step() and score()"),
    ]:
        with pytest.raises(BadResult) as raised:
            asyncio.run(hosted.open(opened, Context("1", 7)))
        assert str(raised.value) == problem
    episode, _ = asyncio.run(hosted.open(Whole(), Context("1", 7)))
    with pytest.raises(BadResult, match="step\\(\\) shows 5, expected a text, messages, or None"):
        episode.turn({"content": "x"})
    requests = Requests(lambda work: work())
    requests._hosted, requests._splits = hosted, {"test": Game().tasks()}
    assert requests._tasks("test", 0, 1) == {"tasks": [{"instruction": "x", "data": {"instruction": "x", "kind": None}}]}
    with pytest.raises(BadEnvironment, match='task 1 of split "test" cannot be written as JSON: object has no JSON form'):
        requests._tasks("test", 1, 2)


def test_an_answer_holds_as_many_tasks_as_a_line() -> None:
    env = Environment("long", tasks=[{"instruction": "x" * 5_000_000}] * 4)
    env.score(lambda: 1)
    requests = Requests(lambda work: work())
    requests._hosted, requests._splits = host_environment(env), {"test": env.splits()["test"]}
    assert [len(requests._tasks("test", start, 4)["tasks"]) for start in (0, 3)] == [1, 1]


def make_shop(**options: Any) -> Environment:
    env = Environment("shop", tasks=[{"instruction": "Buy.", "wants": 2}], **options)
    shelf = {"tea": 5}
    env.state(lambda: {"shelf": shelf, "sold": []})

    def buy(count: int, state: Any, context: Context) -> Any:
        """Buy."""
        state["shelf"]["tea"] -= count
        if state["shelf"]["tea"] < 0:
            refuse("too few")
        if count == 3:
            context.stop()
        return None

    async def look(state: Any) -> Any:
        """Look."""
        await asyncio.sleep(0)
        return state["shelf"]

    env.tool(buy)
    env.tool(look)
    env.is_done(lambda state: state["shelf"]["tea"] == 0)
    env.score(lambda state, task: {"wanted": {"shelf": {"tea": 5 - task["wants"]}, "none": 1}})
    return env


def play(env: Environment) -> OwnEpisode:
    episode = OwnEpisode(env, env.splits()["test"][0], Context("1", 7))
    assert asyncio.run(episode.open()) == {}
    return episode


def test_a_refused_call_is_undone_and_episodes_share_no_state() -> None:
    env = make_shop()
    first, second = play(env), play(env)
    assert first.call("buy", {"count": 2}) == {"text": "null"}
    assert first.call("buy", {"count": 9}) == {"text": "too few", "isError": True}
    assert asyncio.run(first.call("look", {})) == {"text": '{"tea": 3}'}
    assert asyncio.run(second.call("look", {})) == {"text": '{"tea": 5}'}
    assert first.call("buy", {"count": 3}) == {"text": "null", "ends": True, "done": True}
    outcome = {"said": [], "calls": [], "isDone": True}
    assert asyncio.run(second.score(outcome)) == {
        "wanted": {"shelf": {"tea": 3}, "none": 1}, "found": {"shelf": {"tea": 5}}, "state_members": ["shelf", "sold"],
    }


def test_without_undo_a_refused_call_keeps_its_changes() -> None:
    episode = play(make_shop(undo=False))
    episode.call("buy", {"count": 9})
    assert asyncio.run(episode.call("look", {})) == {"text": '{"tea": -4}'}


def test_users_say_lines_or_react() -> None:
    task = {"instruction": "Buy."}

    def answer(env: Environment, *said: str) -> Any:
        return asyncio.run(OwnUser(env).answer(task, list(said), 7))

    assert answer(Environment("e", tasks=[task])) == {"lines": ["Buy."]}
    listed = Environment("e", tasks=[task])
    listed.user(lambda task: ["Hi.", task["instruction"]])
    assert answer(listed) == {"lines": ["Hi.", "Buy."]}
    reactive = Environment("e", tasks=[task])
    reactive.user(lambda said: None if said and said[-1] == "bye" else f"heard {len(said)}")
    assert [answer(reactive), answer(reactive, "a"), answer(reactive, "a", "bye")] == [
        {"text": "heard 0"}, {"text": "heard 1"}, {"leaves": True},
    ]
    drawing = Environment("e", tasks=[task])
    drawing.user(lambda said, context: str(context.random.random()))
    assert answer(drawing) == answer(drawing) != answer(drawing, "a")


def test_arguments_that_do_not_fit_are_the_models_mistake() -> None:
    env = Environment("e", tasks=[{"instruction": "x"}])
    env.tool(paint)
    assert play(env).call("paint", {"color": "green"}) == {"text": "'green' is not a valid Color", "isError": True}


def paint(color: Color) -> str:
    """Paint."""
    return color.name


class Guess(TextEnvironment):
    name = "guess"
    draws_globally = True

    def tasks(self) -> Any:
        return [{"instruction": "Guess.", "secret": 4}]

    def open(self, task: Any, seed: int) -> TextEpisode:
        return GuessEpisode(task["secret"])


class GuessEpisode(TextEpisode):
    def __init__(self, secret: int) -> None:
        self.first, self.secret, self.guess = "A number?", secret, 0

    def step(self, text: str) -> Any:
        self.guess = int(text)
        return ("Lower." if self.guess > self.secret else "Higher.", self.guess == self.secret)

    def score(self) -> Any:
        return float(self.guess == self.secret)


def test_text_environments_answer_texts() -> None:
    hosted = host_environment(Guess())
    assert isinstance(hosted, TextHosted)
    episode, opening = asyncio.run(hosted.open({"instruction": "Guess.", "secret": 4}, Context("1", 7)))
    assert opening == {"messages": [{"role": "user", "content": "A number?"}]}
    assert episode.turn({"content": "7"}) == {"messages": [{"role": "user", "content": "Lower."}], "done": False}
    assert episode.turn({"content": "4"})["done"] is True
    assert asyncio.run(episode.score({})) == 1.0


def test_process_wide_randomness_is_kept_apart() -> None:
    import random

    first, second = Randomness(1), Randomness(1)
    drawn: dict[int, list[float]] = {0: [], 1: []}
    random.seed(99)
    expected = random.Random(99).random()
    for _ in range(3):
        for index, one in enumerate((first, second)):
            with one:
                drawn[index].append(random.random())
    alone = random.Random(1)
    assert drawn[0] == drawn[1] == [alone.random() for _ in range(3)]
    assert random.random() == expected


def test_plain_functions_are_an_environment(tmp_path: Any) -> None:
    file = tmp_path / "plain_env.py"
    file.write_text(
        "name = 'plain'\npolicy = 'p'\ntasks = [{'instruction': 'x'}]\n"
        "def initial_state(task): return {'n': 0}\n"
        "def add(n: int, state):\n    'Add.'\n    state['n'] += n\n    return state['n']\n"
        "tools = [add]\ndef score(state): return state['n']\n"
    )
    env = load_environment(str(file), {})
    assert play(env).call("add", {"n": 2}) == {"text": "2"}
    with pytest.raises(BadEnvironment, match="takes no arguments, expected a function create_environment"):
        load_environment(str(file), {"size": 2})


def test_refusals_have_their_own_error() -> None:
    with pytest.raises(Refused, match="no"):
        refuse("no")

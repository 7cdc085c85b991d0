"""The shims against the trainers' own classes; TURNWRIGHT_TRAINERS is the folder of `npm run accept`."""

import asyncio
import importlib
import os
import sys
import threading
import types
import typing
from pathlib import Path

import pytest
from stub_service import StubService
from turnwright import Unfit

TRAINERS = os.environ.get("TURNWRIGHT_TRAINERS")
SHIMS = Path(__file__).parents[1] / "turnwright/trainers"


@pytest.fixture
def service(monkeypatch):
    with StubService() as server:
        monkeypatch.setenv("TURNWRIGHT_URL", server.url)
        server.policy = (7, None)
        yield server
        server.shutdown()


def shim(name, part, monkeypatch):
    """Imports a shim with its trainer. Skips the test, naming the missing module, if it is not installed."""
    if TRAINERS is not None and part is not None:
        monkeypatch.syspath_prepend(str(Path(TRAINERS) / part))
    try:
        return importlib.import_module(f"turnwright.trainers.{name}")
    except ImportError as error:
        pytest.skip(f"{name}'s own classes are not here: {error} (npm run accept -- {name.split('_')[0]} installs them)")


def test_every_shim_is_below_sixty_lines():
    # Shared modules are not shims.
    shared = {"column_forms.py", "one_play.py", "played.py", "slime_sample.py", "trl_groups.py", "trl_teacher_sample.py"}
    lengths = {file.name: len(file.read_text().splitlines()) for file in SHIMS.glob("*.py") if file.name not in shared}
    assert len(lengths) >= 9 and {name: n for name, n in lengths.items() if n >= 60} == {}


def test_an_attempt_that_failed_is_played_again(service):
    from turnwright.trainers.play import play_scored, connect

    service.rewards = {1: None}
    attempts = play_scored(connect(), task=4, samples=2, seed=9)
    assert [attempt.reward for attempt in attempts] == [1, 1]
    bodies = [body for method, path, body in service.calls if path == "/v1/batches"]
    assert [(body["samples"], body["seed"]) for body in bodies] == [(2, 9), (1, 1_000_013)]
    acks = [body for method, path, body in service.calls if path == "/v1/groups/ack"]
    assert acks == [{"cursor": 1, "batch": "b1"}, {"cursor": 2, "batch": "b2"}], "what was handed over is forgotten"
    service.rewards = dict.fromkeys(range(99))
    with pytest.raises(Exception, match="Task train/5: 1 of 1 attempts were not scored in 5 tries"):
        play_scored(connect(), task=5)


def test_a_process_that_announces_takes_the_run_over(service):
    from turnwright.trainers import play, run_name, take_over

    client, before, versions = play.connect(), len(service.calls), take_over.Versions()
    client.submit(key=f"{run_name.RUN}/5/a", split="train", tasks=[1], samples=1)
    client.submit(key="other/5/a", split="train", tasks=[1], samples=1)
    service.batches["b1"]["described"]["state"] = "running"
    service.policy = (8, None)
    versions.announce(client, 5, "/w/5")
    versions.announce(client, 6, "/w/6")
    sent = [(method, path, body) for method, path, body in service.calls[before + 2:] if method != "GET"]
    assert sent == [("POST", "/v1/clear", {"keyPrefix": f"{run_name.RUN}/"}),
                    ("POST", "/v1/policy", {"version": 5, "weights": "/w/5", "restart": True}),
                    ("POST", "/v1/policy", {"version": 6, "weights": "/w/6"})]
    assert service.policy == (6, "/w/6") and service.batches["b2"]["described"]["state"] == "finished"


def test_clears_a_run_by_name(service, monkeypatch, capsys):
    from turnwright import clear
    from turnwright.trainers import play

    for key in ("old/1", "old/2", "older/1"):
        play.connect().submit(key=key, split="train", tasks=[1], samples=1)
    service.batches["b2"]["described"]["state"] = "queued"
    monkeypatch.setattr(sys, "argv", ["clear", "old"])
    clear.main()
    assert capsys.readouterr().out == "1 unfinished batches are cancelled\n"
    assert service.cleared == ["b1", "b2"], "all of it in one call"
    assert [(method, path) for method, path, _ in service.calls[3:]] == [("POST", "/v1/clear")]


def test_clears_no_run_whose_folder_is_below_its_own(service, monkeypatch, capsys):
    from turnwright import clear
    from turnwright.trainers import one_play, play, run_name

    for run in ("runs/slime", "runs/slime/small"):
        monkeypatch.setattr(one_play, "RUN", run_name.in_keys(run))
        play.play_scored(play.connect(), task=1)
    service.batches["b2"]["described"]["state"] = "running"
    before = len(service.calls)
    monkeypatch.setattr(sys, "argv", ["clear", "runs/slime"])
    clear.main()
    assert capsys.readouterr().out == "0 unfinished batches are cancelled\n"
    assert service.calls[before:] == [("POST", "/v1/clear", {"keyPrefix": "runs%2Fslime/"})] and service.cleared == ["b1"]


def test_slime(service, monkeypatch):
    slime = shim("slime", "src/slime", monkeypatch)
    batch = shim("slime_batch", "src/slime", monkeypatch)
    args = types.SimpleNamespace(rollout_top_p=1.0, rollout_batch_size=2, rollout_temperature=1.0,
                                 dynamic_sampling_filter_path=None, custom_reward_post_process_path=None)
    sample = slime.Sample(index=3, group_index=1, prompt="4", metadata={})
    done = asyncio.run(slime.generate(args, sample, {"temperature": 0.7, "top_k": -1, "max_new_tokens": 9}))
    done._validate_response_metadata_lengths()
    assert (done.tokens, done.response_length, done.reward) == ([1, 2, 3, 10, 11, 20, 21, 12, 99], 6, 1)
    assert done.loss_mask == [1, 1, 0, 0, 1, 1] and done.rollout_log_probs == [-0.25, -0.25, 0, 0, -0.25, -0.25]
    assert done.status == slime.Sample.Status.COMPLETED and done.weight_versions == ["7", "7"]
    assert done.metadata["source_name"] == "shop" and done.non_generation_time == 0.5
    cache = done.prefix_cache_info
    assert (cache.cached_tokens, cache.total_prompt_tokens, done.session_id) == (4, 10, "shop/train/4#0")
    asked = service.calls[0][2]
    assert asked["tasks"] == [4] and asked["sampling"] == {"temperature": 0.7} and asked["split"] == "train"

    # slime counts the samples of each evaluation from 0. The next evaluation must be played again.
    asked = len([path for method, path, _ in service.calls if (method, path) == ("POST", "/v1/batches")])
    keys = set()
    for _ in range(2):
        asyncio.run(slime.generate(args, slime.Sample(index=0, prompt="4", metadata={}), {}, evaluation=True))
        keys.add(service.calls[-3][2]["key"])
    assert len(keys) == 2 and asked == 1

    # slime has enough. The batch is cancelled, and the sample returns to its buffer.
    state = types.SimpleNamespace(GenerateState=lambda _: types.SimpleNamespace(aborted=True))
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "slime.rollout.sglang_rollout", state)
        service.hangs = True
        over = asyncio.run(slime.generate(args, slime.Sample(index=4, prompt="4", metadata={}), {}))
        service.hangs = False
    assert over.status == slime.Sample.Status.ABORTED and over.tokens == []
    assert [path for method, path, _ in service.calls if method == "DELETE"][:1] == ["/v1/batches/b4"]

    service.segments = 2
    with pytest.raises(Unfit, match="Cannot hand the 2 rows"):
        asyncio.run(slime.generate(args, slime.Sample(index=5, prompt="4"), {}))
    split = types.SimpleNamespace(**{**vars(args), "custom_reward_post_process_path": "x", "use_dynamic_batch_size": True})
    rows = asyncio.run(slime.generate(split, slime.Sample(index=6, prompt="4"), {}))
    assert [row.rollout_id for row in rows] == [6, 6]
    for row in rows:
        row._validate_response_metadata_lengths()
    with pytest.raises(Unfit, match="leave it at 1"):
        asyncio.run(slime.generate(types.SimpleNamespace(**{**vars(args), "rollout_top_p": 0.9}),
                                   slime.Sample(index=7, prompt="4"), {}))

    service.segments, number = 1, sum(len(one["asked"]["tasks"]) for one in service.batches.values())
    drawn = []

    class Source:
        def get_samples(self, count):
            groups = [[slime.Sample(index=10 * len(drawn) + 2 * g + s, prompt=str(g)) for s in range(2)]
                      for g in range(count)]
            drawn.append(count)
            return groups

    service.rewards = {number: None}
    service.policy = None
    out = batch.generate_rollout(args, 11, Source())
    assert drawn == [2, 1], "the group with a failed attempt is drawn again"
    assert [len(group) for group in out.samples] == [2, 2] and service.policy == (11, None)
    assert {sample.reward for group in out.samples for sample in group} == {0, 1}


def test_slime_loads_the_dump(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    slime = shim("slime", "src/slime", monkeypatch)
    from slime.observability.rollout_data_utils import load_debug_rollout_data
    from turnwright.slime_dump import write_slime_dump

    row = {"group_index": 0, "index": 0, "rollout_id": 0, "prompt": "p", "tokens": [1, 2, 3], "response": "x",
           "response_length": 2, "loss_mask": [1, 1], "rollout_log_probs": [-0.5, -0.25], "reward": 1,
           "status": "truncated", "weight_versions": ["7"], "remove_sample": False, "label": None,
           "session_id": "s", "non_generation_time": 0.5, "metadata": {"task": "t"},
           "prefix_cache_info": {"cached_tokens": 1, "total_prompt_tokens": 4}}
    template = str(tmp_path / "{rollout_id}.pt")
    write_slime_dump([row, {**row, "index": 1}], template, groups=1)
    first, second = load_debug_rollout_data(template, rollout_id=0)
    assert (first.tokens, first.status, second.index) == ([1, 2, 3], slime.Sample.Status.TRUNCATED, 1)
    assert first.prefix_cache_info.prefix_cache_hit_rate == 0.25 and torch.tensor(first.rollout_log_probs).sum() == -0.75


def test_verl(service, monkeypatch):
    verl = shim("verl", "pkgs/verl", monkeypatch)
    loop = verl.TurnwrightAgentLoop.__new__(verl.TurnwrightAgentLoop)
    loop.rollout_config = types.SimpleNamespace(response_length=100)
    out = asyncio.run(loop.run({"temperature": 1.0}, extra_info={"index": 4})).as_dict()
    assert out["responses"].tolist() == [10, 11, 20, 21, 12, 99]
    assert out["response_mask"].tolist() == [1, 1, 0, 0, 1, 1] and out["rm_scores"].tolist() == [0, 0, 0, 0, 0, 1]
    assert out["extra_fields"]["min_global_steps"] == 7 and out["extra_fields"]["status"] == "completed"
    loop.rollout_config.response_length = 4
    cut = asyncio.run(loop.run({}, extra_info={"index": 4})).as_dict()
    assert cut["responses"].tolist() == [10, 11] and cut["extra_fields"]["status"] == "truncated"

    from omegaconf import OmegaConf

    service.segments, loop.rollout_config.response_length = 3, 100
    loop.config = OmegaConf.create({
        "trainer": {"use_v1": True}, "algorithm": {"adv_estimator": "grpo"}, "data": {"train_batch_size": 8}, "actor_rollout_ref": {
            "actor": {"loss_agg_mode": "token-mean", "use_dynamic_bsz": True, "ppo_mini_batch_size": 32}}})
    rows = [one.as_dict() for one in asyncio.run(loop.run({}, extra_info={"index": 4}))]
    assert [row["responses"].tolist() for row in rows] == [[10, 11, 20, 21, 12, 99], [10, 11], [10, 11, 20, 21, 12, 99]]
    assert {float(row["rm_scores"].sum()) for row in rows} == {1.0 if rows[0]["rm_scores"].sum() else 0.0}
    assert [row["extra_fields"]["reward_extra_info"] for row in rows] == [{}] * 3
    loop.config.actor_rollout_ref.actor.use_dynamic_bsz = False
    with pytest.raises(Unfit, match="as one attempt: set actor_rollout_ref.actor.use_dynamic_bsz=True$"):
        asyncio.run(loop.run({}, extra_info={"index": 4}))


def test_miles(service, monkeypatch):
    # Its own imports want SGLang.
    monkeypatch.setitem(sys.modules, "miles.rollout.data_source", types.SimpleNamespace(DataSource=object))
    miles = shim("miles", "src/miles", monkeypatch)
    from miles.utils.types import Sample

    service.segments = [1, 3]
    args = types.SimpleNamespace(use_dynamic_batch_size=True, train_backend="megatron")
    group = []
    for index, segments in enumerate((1, 3)):
        service.segments = segments
        asked = types.SimpleNamespace(sample=Sample(index=index, group_index=0, prompt="4", metadata={}), sampling_params={},
                                      evaluation=False, args=args, state=types.SimpleNamespace(aborted=False))
        group.append(asyncio.run(miles.generate(asked)).samples)
    assert [[row.rollout_id for row in rows] for rows in group] == [[0], [1, 1, 1]]
    for row in (row for rows in group for row in rows):
        row.validate()
    from miles.rollout.filter_hub.dynamic_sampling_filters import check_reward_nonzero_std

    assert check_reward_nonzero_std(types.SimpleNamespace(reward_key=None), group).keep


def test_skyrl(service, monkeypatch):
    # Before Python 3.12, pydantic accepts this class from typing_extensions only.
    typing_extensions = pytest.importorskip("typing_extensions")
    monkeypatch.setattr(typing, "TypedDict", typing_extensions.TypedDict)
    skyrl = shim("skyrl", "pkgs/skyrl", monkeypatch)
    service.tail = 2
    batch = {"prompts": [[]] * 2, "env_extras": [{"task_index": 4}] * 2, "trajectory_ids": ["a", "b"]}
    cfg = types.SimpleNamespace(generator=types.SimpleNamespace(step_wise_trajectories=False))
    out = asyncio.run(skyrl.TurnwrightGenerator(cfg).generate(batch))
    assert out["response_ids"] == [[10, 11, 20, 21, 12, 99]] * 2 and sorted(out["rewards"]) == [0.0, 1.0]
    assert out["loss_masks"] == [[1, 1, 0, 0, 1, 1]] * 2 and out["trajectory_ids"] == ["a", "b"]

    from skyrl.train.generators.base import TrajectoryID
    from skyrl.train.utils.trainer_utils import validate_generator_output

    service.segments, cfg.generator.step_wise_trajectories = 3, True
    cfg.trainer = types.SimpleNamespace(algorithm=types.SimpleNamespace(
        loss_reduction="token_mean", dynamic_sampling=types.SimpleNamespace(type=None)))
    out = asyncio.run(skyrl.TurnwrightGenerator(cfg).generate({**batch, "trajectory_ids": [TrajectoryID("u", 0), TrajectoryID("u", 1)]}))
    validate_generator_output(2, out, step_wise=True)
    assert out["is_last_step"] == [False, False, True] * 2 and out["rewards"] in ([1.0] * 3 + [0.0] * 3, [0.0] * 3 + [1.0] * 3)


def test_openrlhf(service, monkeypatch):
    openrlhf = shim("openrlhf", "pkgs/openrlhf", monkeypatch)
    service.tail = 2
    out = asyncio.run(openrlhf.AgentExecutor().execute("p", "4", types.SimpleNamespace(temperature=1), 99, None, None))
    assert out["observation_tokens"] == [1, 2, 3, 10, 11, 20, 21, 12, 99]
    assert out["action_ranges"] == [[3, 5], [7, 9]] and out["rollout_log_probs"][:4] == [0, 0, 0, -0.25]
    assert (out["prompt"], out["label"], out["reward"], out["truncated"]) == ("p", "4", 1, False)


def test_areal(service, monkeypatch):
    if TRAINERS is not None:
        # The trainer's own files, without the other imports of its packages.
        for name in ("areal", "areal.api"):
            package = types.ModuleType(name)
            package.__path__ = [str(Path(TRAINERS, "pkgs/areal", *name.split(".")))]
            monkeypatch.setitem(sys.modules, name, package)
    logged = []
    tracker = types.SimpleNamespace(get=lambda scope: types.SimpleNamespace(scalar=lambda reward: logged.append((scope, reward))))
    monkeypatch.setitem(sys.modules, "areal.utils", types.SimpleNamespace(stats_tracker=tracker))
    areal = shim("areal", "pkgs/areal", monkeypatch)
    service.tail = 2
    out = asyncio.run(areal.TurnwrightWorkflow().arun_episode(None, {"task_index": 4}))
    assert out["loss_mask"].tolist() == [[0, 0, 0, 1, 1, 0, 0, 1, 1]], "the row ends with a sampled token"
    assert out["versions"].tolist() == [[-1, -1, -1, 7, 7, -1, -1, 7, 7]] and out["rewards"].tolist() == [1]

    monkeypatch.setattr(sys.modules["areal"], "workflow_context", types.SimpleNamespace(stat_scope=lambda: "rollout"), raising=False)
    group = shim("areal_group", "pkgs/areal", monkeypatch)
    service.segments, service.rewards = [1, 2, 1], {1: 1, 2: 0, 3: 0.5}
    out = asyncio.run(group.TurnwrightGroupWorkflow(samples=3, over_std=False).arun_episode(None, {"task_index": 4}))
    assert logged == [("rollout", 1), ("rollout", 0), ("rollout", 0.5)]
    assert out["rewards"].tolist() == [0.5, -0.5, -0.5, 0.0], "advantages, one an attempt"
    assert out["input_ids"][2].tolist() == [101, 2, 3, 10, 11, 0, 0, 0, 0]
    assert out["attention_mask"].sum(1).tolist() == [9, 9, 5, 9] and out["versions"][2].tolist() == [-1] * 3 + [7, 7] + [-1] * 4
    assert out["loss_mask"][2].tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0]
    service.segments = 2
    with pytest.raises(Unfit, match="use the workflow turnwright.trainers.areal_group.TurnwrightGroupWorkflow$"):
        asyncio.run(areal.TurnwrightWorkflow().arun_episode(None, {"task_index": 4}))
    service.segments = 1
    service.policy = ("", None)
    with pytest.raises(Unfit, match="version is '', expected a whole number: announce one"):
        asyncio.run(areal.TurnwrightWorkflow().arun_episode(None, {"task_index": 4}))
    service.rewards = dict.fromkeys(range(99))
    with pytest.raises(Unfit, match="not scored in 5 tries"):
        asyncio.run(areal.TurnwrightWorkflow().arun_episode(None, {"task_index": 4}))


def test_verifiers(service, monkeypatch):
    for name in ("prime_sandboxes", "prime_sandboxes.models", "prime_tunnel"):
        monkeypatch.setitem(sys.modules, name, __import__("unittest.mock").mock.MagicMock())
    verifiers = shim("verifiers", "pkgs/verifiers", monkeypatch)
    from turnwright.trainers.play import connect, play_scored
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.task import TaskData
    from verifiers.v1.trace import Trace

    (attempt,) = play_scored(connect(), task=4)
    nodes = verifiers.to_nodes(attempt)
    assert [node.token_ids for node in nodes] == [[1, 2, 3], [10, 11], [20, 21], [12, 99]]
    assert [node.parent for node in nodes] == [None, 0, 1, 2] and [node.sampled for node in nodes] == [False, True] * 2

    service.segments = 3
    (several,) = play_scored(connect(), task=4)
    nodes, task = verifiers.to_nodes(several), {"type": "T", "data": TaskData(idx=0, prompt="")}
    trace = Trace[TaskData](task=task, agent={"config": AgentConfig()}, nodes=nodes, is_completed=True, ok=True)
    assert [branch.token_ids for branch in trace.branches] == [row["tokenIds"] for row in several.rows]
    if "semantic_parents" in type(nodes[0]).model_fields:
        assert [(at, [link.model_dump() for link in node.semantic_parents]) for at, node in enumerate(nodes) if node.semantic_parents] == [
            (5, [{"node": 1, "type": "subagent_call"}]), (7, [{"node": 3, "type": "compaction"}])]
        # Nothing continues the second row, which is trained.
        several.rows[1]["metadata"]["lineage"]["from"]["edge"] = "compaction_attempt"
        assert not verifiers.to_nodes(several)[5].semantic_parents
        several.rows[2]["metadata"]["lineage"]["from"] = {"row": 1, "turn": 0, "edge": "compaction"}
        assert [verifiers.to_nodes(several)[at].semantic_parents[0].node for at in (5, 7)] == [1, 5]
    service.segments = 1

    # Finds the taskset by verifiers' own loader, which also has built-in ones with other dependencies.
    monkeypatch.setitem(sys.modules, "verifiers.v1.tasksets", types.ModuleType("verifiers.v1.tasksets"))
    sys.modules["verifiers.v1.tasksets"].__path__ = []
    loaders = importlib.import_module("verifiers.v1.utils.loaders")
    assert loaders.taskset_class("turnwright-tasks").__name__ == "TurnwrightTaskset"

    # verifiers' own client over the wire, at the environment server.
    server_module = shim("verifiers_server", "pkgs/verifiers", monkeypatch)
    tasks = importlib.import_module("turnwright.trainers.verifiers_tasks")
    from verifiers.v1.configs.client import ClientConfig
    from verifiers.v1.serve.client import EnvClient
    from verifiers.v1.types import SamplingConfig

    (task,) = list(tasks.TurnwrightTaskset(tasks.TurnwrightConfig(tasks="4", split="dev")))
    config = next(iter(getattr(ClientConfig, "__args__", ())), ClientConfig)

    async def call():
        server = server_module.TurnwrightServer("tcp://127.0.0.1:*")
        running = asyncio.create_task(server.run())
        client = EnvClient(server.address)
        try:
            assert await client.health(timeout=10)
            given = (client_config(), "policy", SamplingConfig(temperature=0.5), task.data.model_dump(mode="json"))
            return await client.run(*given)
        finally:
            await client.close()
            running.cancel()
            await running

    def client_config():
        from verifiers.v1.configs import client as configs

        return configs.EvalClientConfig() if hasattr(configs, "EvalClientConfig") else config()

    episode = asyncio.run(call())
    (trace,) = episode.traces
    (branch,) = trace.branches
    assert episode.ok and trace.reward in (0, 1) and trace.task.data.task_index == 4
    assert branch.token_ids == [1, 2, 3, 10, 11, 20, 21, 12, 99]
    assert list(branch.logprobs) == [0, 0, 0, -0.25, -0.25, 0, 0, -0.25, -0.25]
    assert [int(bit) for bit in branch.sampled_mask] == [0, 0, 0, 1, 1, 0, 0, 1, 1]
    asked = [body for _, path, body in service.calls if path == "/v1/batches"][-1]
    assert (asked["tasks"], asked["split"], asked["sampling"]) == ([4], "dev", {"temperature": 0.5})


def test_trl(service, monkeypatch):
    trl = shim("trl", None, monkeypatch)
    trainer = types.SimpleNamespace(state=types.SimpleNamespace(global_step=8), temperature=1.0,
                                    accelerator=types.SimpleNamespace(unwrap_model=lambda model: model), model="m")
    service.tail = 2
    out = trl.make_rollout_func(lambda model: f"/weights/{model}")(["4", "4", "7", "7"], trainer)
    assert service.policy == (8, "/weights/m")
    assert out["completion_ids"] == [[10, 11, 20, 21, 12, 99]] * 4 and out["env_mask"] == [[1, 1, 0, 0, 1, 1]] * 4
    assert trl.env_reward([], out["env_reward"]) == [1, 0, 1, 0]
    assert [body["tasks"] for _, path, body in service.calls if path == "/v1/batches"] == [[4], [7]]


def test_trl_batches_have_all_rows(monkeypatch):
    rows = shim("trl_rows", None, monkeypatch)
    import torch
    from stub_service import make_rows
    from turnwright.attempt import to_response

    def attempt(count):
        return [to_response(row) for row in make_rows("r", "g", 1, count=count)]

    def batch(*counts, most=0):
        steps = types.SimpleNamespace(steps_per_generation=4)
        gather = lambda value: torch.cat([value.reshape(-1), torch.full((1,), most)])  # noqa: E731 (another rank has `most`)
        trainer = types.SimpleNamespace(
            rows_by_attempt=[attempt(count) for count in counts], accelerator=types.SimpleNamespace(gather=gather), args=steps,
            model=types.SimpleNamespace(training=True), pad_to_multiple_of=None, processing_class=types.SimpleNamespace(pad_token_id=9))
        out = {"advantages": torch.tensor([0.5, -0.5]), "prompt_ids": "as TRL made it"}
        return out, rows.with_all_rows(trainer, out)

    out, same = batch(1, 1)
    assert same is out, "with one row an attempt, the batch is TRL's own"
    _, made = batch(1, 3)
    assert made["advantages"].tolist()[:4] == [0.5, -0.5, -0.5, -0.5] and made["prompt_ids"][:, 0].tolist() == [1, 1, 101, 201]
    assert made["completion_ids"][2].tolist() == [10, 11, 9, 9, 9, 9] and made["completion_mask"][2].tolist() == [1, 1, 0, 0, 0, 0]
    assert (made["tool_mask"] * made["completion_mask"]).sum(1).tolist() == [4, 4, 2, 4] and made["num_items_in_batch"] == 14
    assert made["old_per_token_logps"][2].tolist() == [-0.25, -0.25, 0, 0, 0, 0]
    _, made = batch(1, 1, most=5)
    assert (made["tool_mask"] * made["completion_mask"]).sum(1).tolist() == [4, 4, 0, 0, 0, 0, 0, 0], "as many as on another rank"
    with pytest.raises(RuntimeError, match="TRL scored 2 attempts, and 1 were played"):
        batch(1)


def test_art(service, monkeypatch):
    art = shim("art", "pkgs/openpipe-art", monkeypatch)
    from art.preprocessing.tokenize import tokenize_trajectory_groups

    service.segments = [1, 3]
    groups = asyncio.run(art.play_groups([4], samples=2))
    results = list(tokenize_trajectory_groups(types.SimpleNamespace(name_or_path="none", decode=str), groups, False, True,
                                              shuffle_group_trajectories=False))
    assert [result.token_ids[0] for result in results] == [1, 1, 101, 201]
    assert [[at for at, bit in enumerate(result.assistant_mask) if bit] for result in results] == [
        [3, 4, 7, 8], [3, 4, 7, 8], [3, 4], [3, 4, 7, 8]]
    assert [round(result.advantage, 3) for result in results] == [1, -1, -1, -1]


def test_trl_async(service, monkeypatch, tmp_path):
    worker_module = shim("trl_async", None, monkeypatch)
    weights = shim("trl_weights", None, monkeypatch)
    import torch
    from safetensors.torch import load_file

    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    service.policy = None
    transfer = weights.FolderTransfer(str(tmp_path / "weights"), str(model))
    transfer.init_weight_transfer()
    assert service.policy == (0, str(model)), "the worker's first batches have the model's own weights"
    for version in (1, 2, 3):
        transfer.pause()
        transfer.send_weights(iter([("a", torch.full((2,), float(version))), ("lm_head.weight", torch.zeros(2))]))
        transfer.resume()
        folder = tmp_path / "weights" / f"version-{version}"
        assert service.policy == (version, str(folder)) and (folder / "config.json").exists()
        assert {name: one.tolist() for name, one in load_file(folder / "model.safetensors").items()} == {"a": [version] * 2}
    assert sorted(one.name for one in (tmp_path / "weights").iterdir()) == ["version-2", "version-3"]

    worker = worker_module.TurnwrightWorker([4, 7], samples=2, ahead=4)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=30) for _ in range(4)]
    worker.stop()
    assert [sample.group_id for sample in samples] == [0, 0, 1, 1]
    assert [sample.advantage for sample in samples] == [0.5, -0.5, 0.5, -0.5]
    assert samples[0].input_ids.tolist() == [1, 2, 3, 10, 11, 20, 21, 12, 99] and samples[0].model_version == 3
    assert samples[0].completion_mask.tolist() == [0, 0, 0, 1, 1, 0, 0, 1, 1]
    assert samples[0].old_log_probs.tolist() == [0, 0, 0, -0.25, -0.25, 0, 0, -0.25, -0.25]
    worker.check_health(1)

    broken = worker_module.TurnwrightWorker([4])
    service.rewards = dict.fromkeys(range(999))
    broken._work(threading.Event())
    with pytest.raises(RuntimeError, match="The worker has stopped"):
        broken.check_health(1)

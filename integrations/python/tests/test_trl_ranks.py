"""TRL's GRPOTrainer on several ranks: the trainer's calls, in their order, with stand-ins of TRL and accelerate.

Source of the order: TRL 1.16.0, trl/trainer/grpo_trainer.py. `_get_train_sampler` repeats each prompt `num_generations` times
in a row over the ranks, rank 0 first; `_prepare_inputs` calls the rollout function once for `steps_per_generation`
batches, and once for each batch of an evaluation, with `model.training` false; groups are rows of all ranks, so many in a row.
"""

import sys
import types

import pytest
from fake_trainers import Ranks, import_shim
from stub_service import StubService


@pytest.fixture
def service(monkeypatch):
    with StubService() as server:
        monkeypatch.setenv("TURNWRIGHT_URL", server.url)
        server.samples_by_seed = True
        yield server
        server.shutdown()


class Accelerator:
    def __init__(self, rank, count, kind="DistributedType.MULTI_GPU"):
        self.process_index, self.num_processes, self.distributed_type = rank, count, kind

    def unwrap_model(self, model):
        return model


def make_trainer(rank, count, size=4, **about):
    return types.SimpleNamespace(
        state=types.SimpleNamespace(global_step=0), model=types.SimpleNamespace(training=True), temperature=1.0, top_p=1.0,
        top_k=0, min_p=None, num_generations=size, num_generations_eval=2, accelerator=Accelerator(rank, count), **about)


def call(monkeypatch, count, work):
    """Returns the results of `work(rank, trl)` on all ranks."""
    trl, ranks = import_shim(monkeypatch, "trl"), Ranks(count)
    utils = types.ModuleType("accelerate.utils")
    utils.gather_object, utils.broadcast_object_list = ranks.gather_object, ranks.broadcast_object_list
    monkeypatch.setitem(sys.modules, "accelerate", types.ModuleType("accelerate"))
    monkeypatch.setitem(sys.modules, "accelerate.utils", utils)
    return ranks.run(lambda rank: work(rank, trl))


def slice_of(values, rank, count):
    size = len(values) // count
    return values[rank * size:(rank + 1) * size]


# Global step, mode and prompts of each call: two generations in step 0, two batches of an evaluation, twice.
CALLS = [(0, True, ["4"] * 4 + ["7"] * 4), (0, True, ["4"] * 8), (1, False, ["4", "4", "9", "9"]),
         (1, False, ["4", "4", "9", "9"]), (1, True, ["4"] * 4 + ["7"] * 4), (2, False, ["4", "4", "9", "9"])]


def train(monkeypatch, count, published):
    def work(rank, trl):
        trainer, seen = make_trainer(rank, count), []
        rollout = trl.make_rollout_func(lambda model: published.append(rank) or f"/w/{trainer.state.global_step}")
        for trainer.state.global_step, trainer.model.training, prompts in CALLS:
            out = rollout(slice_of(prompts, rank, count), trainer)
            assert out["env_reward"] == trl.env_reward([], out["env_reward"])
            seen.append([(ids[0], reward) for ids, reward in zip(out["completion_ids"], out["env_reward"])])
        return seen

    by_rank = call(monkeypatch, count, work)
    assert not [one for one in by_rank if isinstance(one, Exception)], by_rank
    return [[row for rank in by_rank for row in rank[at]] for at in range(len(CALLS))]


@pytest.mark.parametrize("count", [2, 4])
def test_several_ranks_are_given_what_one_is_and_no_attempt_twice(service, monkeypatch, count):
    alone, published = train(monkeypatch, 1, []), []
    before, service.policy = len(service.calls), None
    service.lines.clear()
    assert train(monkeypatch, count, published) == alone
    first, second, evaluated, evaluated_on, third, later = [[seed for seed, _ in call] for call in alone]
    assert len({*first, *second, *third}) == 24, "no attempt of a task is a copy, also if a step generates twice"
    assert len({*evaluated, *evaluated_on}) == 8 and not {*evaluated} & {*first, *second, *third}
    assert evaluated == later, "evaluations compare"
    assert published == [0, 0, 0], "once a step, on rank 0"
    sent = [(method, path, body) for method, path, body in service.calls[before:] if path != "/v1/groups/ack"]
    assert [path for method, path, _ in sent if path == "/v1/clear"] == ["/v1/clear"]
    assert not [path for method, path, _ in sent if method == "DELETE"], "nothing is cancelled"
    assert [body["version"] for _, path, body in sent if path == "/v1/policy"] == [0, 1, 2]
    asked = [(body["tasks"], body["samples"]) for _, path, body in sent if path == "/v1/batches"]
    assert asked[:4] == [([4], 4), ([7], 4), ([4], 4), ([4], 4)] and asked[4:6] == [([4], 2), ([9], 2)]


def test_an_attempt_that_failed_is_played_again_alike_on_any_number_of_ranks(service, monkeypatch):
    service.rewards = {1: None, 2: None}
    alone = train(monkeypatch, 1, [])
    service.policy = None
    service.lines.clear()
    assert train(monkeypatch, 2, []) == alone and len({seed for seed, _ in alone[0]}) == 8


def test_a_failure_of_rank_0_is_raised_on_every_rank(service, monkeypatch):
    service.refused_splits = ("gone",)

    def work(rank, trl):
        return trl.make_rollout_func()(["4", "gone/7"], make_trainer(rank, 2, size=1))

    first, second = call(monkeypatch, 2, work)
    assert type(first).__name__ == "ServiceError" and type(second) is RuntimeError
    assert str(second) == "Rank 0 failed, so rank 1 stops too: ServiceError: bad-request (400): as asked"
    assert [path for method, path, _ in service.calls if method == "DELETE"] == ["/v1/batches/b1"], "no batch plays without a reader"


@pytest.mark.parametrize("broken", [0, 1])
def test_weights_that_are_sharded_are_gathered_on_every_rank(service, monkeypatch, broken):
    def work(rank, trl):
        def publish(model):
            published.append(rank)
            if rank == broken and trainer.state.global_step == 1:
                raise OSError("disk full")
            return "/w"

        trainer, rollout = make_trainer(rank, 2), trl.make_rollout_func(publish)
        trainer.accelerator.distributed_type = "DistributedType.FSDP"
        rollout(["4"] * 2, trainer)
        trainer.state.global_step = 1
        return rollout(["4"] * 2, trainer)

    published = []
    results = call(monkeypatch, 2, work)
    assert sorted(published) == [0, 0, 1, 1]
    assert str(results[broken]) == "disk full"
    assert str(results[1 - broken]) == f"Rank {broken} failed, so rank {1 - broken} stops too: OSError: disk full"


def test_each_form_of_a_prompt_names_its_task(service, monkeypatch):
    def work(rank, trl):
        chat = [{"role": "user", "content": "test/5"}]
        trainer = make_trainer(rank, 1, size=2)
        trainer.top_p, trainer.top_k, trainer.min_p = 0.9, 20, 0.1
        assert trl.make_rollout_func()([], trainer)["completion_ids"] == []
        return len(trl.make_rollout_func()([chat, chat, "dev/2", "3"], trainer)["completion_ids"])

    assert call(monkeypatch, 1, work) == [4]
    bodies = [body for _, path, body in service.calls if path == "/v1/batches"]
    assert [(body["split"], body["tasks"], body["samples"]) for body in bodies] == [("test", [5], 2), ("dev", [2], 1), ("train", [3], 1)]
    assert bodies[0]["sampling"] == {"temperature": 1.0, "topP": 0.9, "topK": 20, "minP": 0.1}
    (error,) = call(monkeypatch, 1, lambda rank, trl: trl.make_rollout_func()(["book a flight"], make_trainer(rank, 1)))
    assert "Cannot read 'book a flight' as a task: expected an index such as 4, or test/4" in str(error)


def test_a_training_that_begins_anew_in_the_same_process_takes_the_run_over(service, monkeypatch):
    def work(rank, trl):
        for steps in ((0, 1), (0, 1)):
            trainer, rollout = make_trainer(rank, 1), trl.make_rollout_func(lambda model: f"/w/{trainer.state.global_step}")
            for trainer.state.global_step in steps:
                rollout(["4"] * 4, trainer)

    assert call(monkeypatch, 1, work) == [None]
    announced = [(body["version"], body.get("restart")) for _, path, body in service.calls if path == "/v1/policy"]
    assert announced == [(0, True), (1, None), (0, True), (1, None)]

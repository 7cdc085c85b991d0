"""The shims in parallel, on cancellation, at a start and in evaluation, with stand-ins of the trainers.

Source of the orders: slime 624b824a8, slime/rollout/sglang_rollout.py (samples of a step run at once; `abort()` sets
`aborted` and waits for all of them; an evaluation counts its samples from 0); verl 0.9.1, agent_loop.py (workers call `run()`
for each row of their chunk at once); SkyRL 0.4.0, train/generators/utils.py `prepare_generator_input` (uids and repetitions);
OpenRLHF 0.11.2, trainer/ray/vllm_engine.py (one `execute()` a sample, at once); TRL 1.16.0, async_grpo_trainer.py (every
rank makes worker and transfer; rank 0 calls `init_weight_transfer`, sends weights, starts the worker, stops it).
"""

import asyncio
import sys
import time
import types
from dataclasses import dataclass

import pytest
from fake_trainers import Sample, import_shim
from stub_service import StubService
from turnwright import Client, ServiceError, Unfit


@pytest.fixture
def service(monkeypatch):
    with StubService() as server:
        monkeypatch.setenv("TURNWRIGHT_URL", server.url)
        server.policy = (7, None)
        yield server
        server.shutdown()


def asked(service):
    return [body for method, path, body in service.calls if (method, path) == ("POST", "/v1/batches")]


def cancelled(service):
    return sorted(path for method, path, _ in service.calls if method == "DELETE")


async def until(is_so):
    while not is_so():
        await asyncio.sleep(0.005)


def test_a_play_that_is_cancelled_before_it_began_asks_for_nothing(service):
    from turnwright.trainers.one_play import Play

    play = Play(Client(service.url), split="train", task=4)
    play.cancel()
    with pytest.raises(Unfit, match="Task train/4: 1 of 1 attempts were not scored in 1 tries"):
        play.scored()
    assert service.calls == []


def test_a_play_whose_caller_is_cancelled_is_cancelled_at_the_service(service):
    from turnwright.trainers.one_play import Play
    from turnwright.trainers.played import played

    async def leave():
        playing = asyncio.create_task(played(Play(Client(service.url), split="train", task=4)))
        await until(lambda: service.batches)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    service.hangs = True
    asyncio.run(leave())
    assert cancelled(service) == ["/v1/batches/b1"]


def test_a_batch_that_is_gone_keeps_no_other_from_being_given_up(service):
    from turnwright import ServiceError
    from turnwright.trainers.one_play import Play

    play = Play(Client(service.url), split="train", task=4)
    play.begin()
    play._open = {"gone": 0, **play._open}
    with pytest.raises(ServiceError):
        play.cancel()
    assert cancelled(service) == ["/v1/batches/b1", "/v1/batches/gone"]


def test_slime_aborts_samples_that_wait_for_a_thread(service, monkeypatch):
    slime = import_shim(monkeypatch, "slime")
    from turnwright.trainers import played

    monkeypatch.setattr(played, "MAX_PLAYS", 2)
    played._threads.cache_clear()
    state = types.SimpleNamespace(aborted=False)
    monkeypatch.setitem(sys.modules, "slime.rollout.sglang_rollout", types.SimpleNamespace(GenerateState=lambda _: state))

    async def step():
        samples = [asyncio.create_task(slime.generate(None, Sample(index=n, prompt="4"), {})) for n in range(8)]
        await until(lambda: len(service.batches) == 2)
        state.aborted = True
        return await asyncio.gather(*samples)

    service.hangs = True
    assert {sample.status.value for sample in asyncio.run(step())} == {"aborted"}
    played._threads.cache_clear()
    assert cancelled(service) == sorted(f"/v1/batches/{name}" for name in service.batches)


def test_slime_samples_without_an_index_are_no_copies(service, monkeypatch):
    slime = import_shim(monkeypatch, "slime")

    async def group():
        await asyncio.gather(*(slime.generate(None, Sample(prompt="4", metadata={"split": "dev"}), {}) for _ in range(4)))

    asyncio.run(group())
    assert len({body["seed"] for body in asked(service)}) == 4 and {body["split"] for body in asked(service)} == {"dev"}


def test_slime_draws_no_step_without_end(service, monkeypatch):
    batch = import_shim(monkeypatch, "slime_batch")
    args = types.SimpleNamespace(rollout_batch_size=2, rollout_temperature=0.5, rollout_top_k=20)
    drawn = []

    class Source:
        def get_samples(self, count):
            drawn.append(count)
            return [[Sample(prompt="dev/4") for _ in range(2)] for _ in range(count)]

    service.rewards = dict.fromkeys(range(99))
    service.policy = None
    with pytest.raises(Unfit, match="No group of rollout 3 was completely scored in 5 draws"):
        batch.generate_rollout(args, 3, Source())
    assert drawn == [2] * 5 and len({body["seed"] for body in asked(service)}) == 10
    assert asked(service)[0]["sampling"] == {"temperature": 0.5, "topK": 20} and asked(service)[0]["split"] == "dev"


def test_verl_rows_of_one_group_have_seeds_of_their_own(service, monkeypatch):
    verl = import_shim(monkeypatch, "verl")
    loop = verl.TurnwrightAgentLoop()
    loop.rollout_config = types.SimpleNamespace(response_length=100)

    async def chunk(extra):
        return await asyncio.gather(*(loop.run({"temperature": 1.0}, extra_info=extra) for _ in range(40)))

    outputs = asyncio.run(chunk({"index": 4}))
    assert len(outputs) == 40 and outputs[0].response_ids == [10, 11, 20, 21, 12, 99]
    asyncio.run(chunk({"index": 4, "split": "test"}))
    assert len({body["seed"] for body in asked(service)}) == 80
    assert [body["split"] for body in asked(service)] == ["train"] * 40 + ["test"] * 40


def test_openrlhf_hands_on_all_that_says_how_to_sample(service, monkeypatch):
    openrlhf = import_shim(monkeypatch, "openrlhf")
    parameters = types.SimpleNamespace(temperature=0.6, top_p=0.9, top_k=20, min_p=0.1, max_tokens=9)

    async def group():
        executor = openrlhf.AgentExecutor()
        return await asyncio.gather(*(executor.execute("p", "test/4", parameters, 99, None, None) for _ in range(4)))

    assert [out["action_ranges"] for out in asyncio.run(group())] == [[[3, 5], [7, 9]]] * 4
    assert asked(service)[0]["sampling"] == {"temperature": 0.6, "topP": 0.9, "topK": 20, "minP": 0.1}
    assert len({body["seed"] for body in asked(service)}) == 4 and asked(service)[0]["split"] == "test"


@dataclass
class Named:
    instance_id: str
    repetition_id: int


def skyrl_config(step_wise=False, **algorithm):
    settings = {"loss_reduction": "token_mean", "dynamic_sampling": types.SimpleNamespace(type=None), **algorithm}
    return types.SimpleNamespace(generator=types.SimpleNamespace(step_wise_trajectories=step_wise),
                                 trainer=types.SimpleNamespace(algorithm=types.SimpleNamespace(**settings)))


def skyrl_batch(step, phase="train", tasks=(4, 4, 7, 7), split="train"):
    return {"env_extras": [{"task_index": task, "split": split} for task in tasks],
            "trajectory_ids": [Named(f"uid-{task}", place % 2) for place, task in enumerate(tasks)],
            "batch_metadata": types.SimpleNamespace(global_step=step, training_phase=phase)}


def test_skyrl_seeds_go_by_step_prompt_and_repetition(service, monkeypatch):
    skyrl = import_shim(monkeypatch, "skyrl")

    def seeds(generator, batch):
        before = len(asked(service))
        asyncio.run(generator.generate(batch))
        return sorted((body["tasks"][0], body["seed"]) for body in asked(service)[before:])

    generator = skyrl.TurnwrightGenerator(skyrl_config())
    first = seeds(generator, skyrl_batch(5))
    again = seeds(generator, skyrl_batch(5))
    evaluated = seeds(generator, skyrl_batch(5, "eval", split="test"))
    assert len({seed for _, seed in first + again + evaluated}) == 12, "also a prompt that is drawn twice in a step"
    assert seeds(skyrl.TurnwrightGenerator(skyrl_config()), skyrl_batch(5)) == first, "after a restart from a checkpoint"
    assert seeds(generator, skyrl_batch(6)) != first
    assert {body["split"] for body in asked(service)[8:12]} == {"test"}
    assert asyncio.run(generator.generate(skyrl_batch(7, tasks=())))["response_ids"] == []


def test_skyrl_cancels_the_rest_of_a_batch_of_which_one_fails(service, monkeypatch):
    skyrl = import_shim(monkeypatch, "skyrl")
    batch = skyrl_batch(5, tasks=(4, 7))
    batch["env_extras"][1]["split"] = "gone"
    service.refused_splits, service.hangs = ("gone",), True
    with pytest.raises(ServiceError, match="bad-request"):
        asyncio.run(skyrl.TurnwrightGenerator(skyrl_config()).generate(batch))
    assert cancelled(service) == [f"/v1/batches/{name}" for name in service.batches]


def wait_until(is_so):
    while not is_so():
        time.sleep(0.005)


def test_trl_async_asks_for_nothing_on_ranks_that_only_make_its_parts(service, monkeypatch, tmp_path):
    worker, weights = import_shim(monkeypatch, "trl_async"), import_shim(monkeypatch, "trl_weights")
    worker.TurnwrightWorker([4])
    transfer = weights.FolderTransfer(str(tmp_path / "weights"), str(tmp_path))
    assert service.calls == []
    transfer.init_weight_transfer()
    assert [path for _, path, _ in service.calls] == ["/v1/clear", "/v1/policy"]


def test_trl_async_stops_where_its_queue_is_full_and_starts_again(service, monkeypatch):
    module = import_shim(monkeypatch, "trl_async")
    with pytest.raises(ValueError, match="Cannot train without tasks"):
        module.TurnwrightWorker([])
    worker = module.TurnwrightWorker([4, "test/7"], samples=2, ahead=1)
    for _ in range(2):
        worker.start()
        wait_until(worker.rollout_buffer.full)
        worker.stop()
        assert worker.rollout_buffer.get_nowait().advantage == 0.5 and worker.rollout_buffer.empty()
    worker.check_health(1)

    service.hangs, before = True, len(service.batches)
    worker.start()
    wait_until(lambda: len(service.batches) > before)
    worker.stop()
    assert cancelled(service)[-1] == f"/v1/batches/{list(service.batches)[-1]}"
    worker.check_health(1)

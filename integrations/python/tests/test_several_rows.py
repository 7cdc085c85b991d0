"""Attempts with several rows through every shim, with stand-ins of the trainers: each attempt weighs one."""

import asyncio
import logging
import sys
import types

import pytest
from fake_trainers import MilesSample, Sample, import_shim
from stub_service import StubService, make_rows
from test_shims import Named, asked, skyrl_config
from test_trl_ranks import call, make_trainer
from turnwright import Unfit, lineage_of
from turnwright.attempt import to_attempt

ROWS = [[10, 11, 20, 21, 12, 99], [10, 11], [10, 11, 20, 21, 12, 99]]
MASKS = [[1, 1, 0, 0, 1, 1], [1, 1], [1, 1, 0, 0, 1, 1]]
PROMPTS = [[1, 2, 3], [101, 2, 3], [201, 2, 3]]


@pytest.fixture
def service(monkeypatch):
    with StubService() as server:
        monkeypatch.setenv("TURNWRIGHT_URL", server.url)
        server.policy = (7, None)
        server.segments = 3
        yield server
        server.shutdown()


def attempt_of(count, reward=1.0, masked=(), rollout="shop/train/4#0", **about):
    rows = make_rows(rollout, "shop/train/4", reward, count=count, masked=masked, version="7")
    return to_attempt({"rolloutId": rollout, "outcome": "completed", "stopReason": "user-left", "reward": reward,
                       "rows": rows, **about})


def settings(**given):
    return types.SimpleNamespace(**given)


@pytest.fixture
def said(caplog):
    from turnwright.trainers import several_rows

    several_rows._said.clear()
    caplog.set_level(logging.WARNING, "turnwright")
    return lambda: [record.message for record in caplog.records]


def test_an_attempt_gives_its_rows_that_have_a_trained_token():
    attempt = attempt_of(4, masked=(1, 3))
    assert (len(attempt.rows), attempt.row_count, attempt.token_count) == (4, 2, 8)
    assert [row.prompt_ids for row in attempt.responses()] == [[1, 2, 3], [201, 2, 3]]
    assert [lineage_of(row) for row in attempt.trained_rows] == [
        {"role": "main", "row": 0, "rowCount": 2, "attemptTokenCount": 8},
        {"role": "subagent", "row": 1, "rowCount": 2, "attemptTokenCount": 8,
         "from": {"row": 0, "turn": 0, "edge": "subagent_call"}}]
    with pytest.raises(Unfit, match="shop/train/4#0 has 2 rows, and one is expected"):
        attempt.response()
    alone = attempt_of(2, masked=(1,))
    assert alone.response() == alone.responses()[0] and lineage_of(alone.rows[0]) == {} and alone.row_count == 1
    with pytest.raises(Unfit, match="shop/train/4#0 has no sampled token"):
        attempt_of(1, masked=(0,)).responses()


def test_group_advantages_are_centred_and_divided_by_the_sample_deviation():
    from turnwright.trainers.several_rows import group_advantages

    assert group_advantages([1.0, 0.0, 0.5], over_std=False) == [0.5, -0.5, 0.0]
    assert group_advantages([1.0, 0.0, 0.5], over_std=True, epsilon=0.5) == [0.5, -0.5, 0.0]
    assert group_advantages([3.0], over_std=True) == [0.0]


SLIME = {"advantage_estimator": "grpo", "rewards_normalization": True, "grpo_std_normalization": True,
         "custom_reward_post_process_path": "turnwright.trainers.slime_rewards.by_attempt", "use_dynamic_batch_size": True}


def test_slime_gets_a_sample_a_row_with_one_rollout_id(service, monkeypatch):
    slime = import_shim(monkeypatch, "slime")
    service.masked = (1,)
    rows = asyncio.run(slime.generate(settings(**SLIME), Sample(index=5, group_index=2, prompt="4"), {}))
    assert [(row.rollout_id, row.group_index, row.reward, row.session_id) for row in rows] == [(5, 2, 1, "shop/train/4#0")] * 2
    assert [row.tokens[0] for row in rows] == [1, 201] and [row.loss_mask for row in rows] == [MASKS[0], MASKS[2]]
    assert [row.metadata["lineage"]["row"] for row in rows] == [0, 1]

    # A group has one shape: slime flattens a step by the shape of its first sample.
    service.segments = 1
    (alone,) = asyncio.run(slime.generate(settings(**SLIME), Sample(index=6, prompt="4"), {}))
    assert (alone.rollout_id, alone.loss_mask) == (6, MASKS[0])


def test_slime_names_the_flags_that_several_rows_need(service, monkeypatch):
    slime = import_shim(monkeypatch, "slime")
    wrong = settings(dynamic_sampling_filter_path="slime.rollout.filter_hub.x", group_rm=True, log_passrate=True, partial_rollout=True)
    with pytest.raises(Unfit) as error:
        asyncio.run(slime.generate(wrong, Sample(index=5, prompt="4"), {}))
    assert str(error.value) == (
        "Cannot hand the 3 rows of shop/train/4#0 to slime as one attempt: "
        "set --custom-reward-post-process-path turnwright.trainers.slime_rewards.by_attempt; "
        "set --dynamic-sampling-filter-path turnwright.trainers.slime_rewards.differ; set --use-dynamic-batch-size; "
        "remove --group-rm; remove --log-passrate; remove --partial-rollout")
    evaluated = asyncio.run(slime.generate(wrong, Sample(index=5, prompt="4"), {}, evaluation=True))
    assert (evaluated.tokens[0], evaluated.reward) == (1, 0), "an evaluation counts the attempt once"
    service.segments = 1
    assert asyncio.run(slime.generate(wrong, Sample(index=6, prompt="4"), {})).loss_mask == MASKS[0]


def test_slime_gives_all_rows_the_advantage_of_their_attempt(monkeypatch):
    rewards = import_shim(monkeypatch, "slime_rewards")
    samples = [Sample(index=attempt, rollout_id=attempt, group_index=group, reward=reward) for group, attempt, reward, rows in (
        (0, 0, 1.0, 1), (0, 1, 0.0, 3), (0, 2, 0.5, 2), (1, 3, 1.0, 1), (1, 4, 0.0, 1)) for _ in range(rows)]
    raw, advantages = rewards.by_attempt(settings(**SLIME), samples)
    assert raw == [1, 0, 0, 0, 0.5, 0.5, 1, 0]
    assert [round(one, 4) for one in advantages] == [1, -1, -1, -1, 0, 0, 0.7071, -0.7071]
    assert rewards.by_attempt(settings(**{**SLIME, "grpo_std_normalization": False}), samples)[1] == [
        0.5, -0.5, -0.5, -0.5, 0, 0, 0.5, -0.5]
    baseline = {**SLIME, "advantage_estimator": "reinforce_plus_plus_baseline"}
    assert rewards.by_attempt(settings(**baseline), samples)[1][:2] == [0.5, -0.5]
    assert rewards.by_attempt(settings(**{**SLIME, "advantage_estimator": "ppo"}), samples) == (raw, raw)
    samples[6].rollout_id, samples[7].rollout_id = 1, 0  # Ids that the first group has, too.
    assert [round(one, 4) for one in rewards.by_attempt(settings(**SLIME), samples)[1]] == [
        1, -1, -1, -1, 0, 0, 0.7071, -0.7071]
    samples[1].reward = 0.25
    with pytest.raises(Unfit, match="The rows of attempt 1 have different rewards"):
        rewards.by_attempt(settings(**SLIME), samples)


def test_slime_keeps_groups_whose_attempts_differ(monkeypatch):
    rewards = import_shim(monkeypatch, "slime_rewards")
    equal, other = [Sample(reward=0.5)] * 3, [Sample(reward=1.0)]
    assert vars(rewards.differ(None, [equal, [Sample(reward=0.5)]])) == {"keep": False, "reason": "zero_std_0.5"}
    assert vars(rewards.differ(None, [equal, other])) == {"keep": True, "reason": None}
    assert not rewards.differ(None, [Sample(reward=1), Sample(reward=1)]).keep


def test_slime_batch_takes_all_rows_and_acknowledges_no_group_that_it_refuses(service, monkeypatch):
    batch = import_shim(monkeypatch, "slime_batch")
    service.policy, service.segments = None, [1, 3]
    args = {"rollout_batch_size": 1, "rollout_temperature": 1.0, **SLIME}

    class Source:
        def get_samples(self, count):
            return [[Sample(index=place, group_index=0, prompt="4") for place in range(2)] for _ in range(count)]

    (group,) = batch.generate_rollout(settings(**args), 3, Source()).samples
    assert [[row.rollout_id for row in rows] for rows in group] == [[0], [1, 1, 1]]
    acknowledged = [path for _, path, _ in service.calls].count("/v1/groups/ack")
    with pytest.raises(Unfit, match="set --use-dynamic-batch-size"):
        batch.generate_rollout(settings(**{**args, "use_dynamic_batch_size": False}), 4, Source())
    assert [path for _, path, _ in service.calls].count("/v1/groups/ack") == acknowledged == 1


def ask_miles(sample, evaluation=False, aborted=False, **given):
    args = settings(**{"use_dynamic_batch_size": True, **given})
    return settings(sample=sample, sampling_params={"temperature": 0.5}, evaluation=evaluation, args=args,
                    state=settings(aborted=aborted))


def test_miles_gets_a_sample_a_row_with_one_rollout_id(service, monkeypatch):
    miles = import_shim(monkeypatch, "miles")
    rows = asyncio.run(miles.generate(ask_miles(MilesSample(index=5, prompt="4")))).samples
    assert [(row.rollout_id, row.reward) for row in rows] == [(5, 1)] * 3 and not hasattr(rows[0], "session_id")
    assert asked(service)[0]["sampling"] == {"temperature": 0.5} and asked(service)[0]["seed"] == 5
    evaluated = asyncio.run(miles.generate(ask_miles(MilesSample(index=0, prompt="4"), evaluation=True))).samples
    assert (evaluated.tokens[0], evaluated.rollout_id) == (1, None)
    wrong = {"use_dynamic_batch_size": False, "train_backend": "fsdp", "use_dynamic_global_batch_size": True, "indep_dp": True,
             "group_rm": True, "partial_rollout": True, "recompute_logprobs_via_prefill": True}
    with pytest.raises(Unfit) as error:
        asyncio.run(miles.generate(ask_miles(MilesSample(index=5, prompt="4"), **wrong)))
    assert str(error.value) == (
        "Cannot hand the 3 rows of shop/train/4#0 to miles as one attempt: set --train-backend megatron; "
        "set --use-dynamic-batch-size; remove --use-dynamic-global-batch-size; remove --indep-dp; remove --group-rm; "
        "remove --partial-rollout; remove --recompute-logprobs-via-prefill")
    service.hangs = True
    over = asyncio.run(miles.generate(ask_miles(MilesSample(index=5, prompt="4"), aborted=True))).samples
    assert over.status.value == "aborted"


class Section(dict):
    """A part of a configuration of Hydra, with `get` and attributes."""

    __getattr__ = dict.__getitem__


def verl_config(use_v1=True, estimator="grpo", mode="token-mean", dynamic=True, mini=64):
    actor = Section(loss_agg_mode=mode, use_dynamic_bsz=dynamic, ppo_mini_batch_size=mini)
    return Section(trainer=Section(use_v1=use_v1), algorithm=Section(adv_estimator=estimator), data=Section(train_batch_size=16),
                   actor_rollout_ref=Section(actor=actor))


def verl_run(verl, config, limit=100):
    loop = verl.TurnwrightAgentLoop()
    loop.config, loop.rollout_config = config, settings(response_length=limit)
    return asyncio.run(loop.run({}, extra_info={"index": 4}))


def test_verl_gets_a_list_of_the_rows(service, monkeypatch, said):
    verl = import_shim(monkeypatch, "verl")
    outputs = verl_run(verl, verl_config())
    assert [(out.prompt_ids, out.response_ids, out.response_mask) for out in outputs] == list(zip(PROMPTS, ROWS, MASKS))
    about = {"rollout_id": "shop/train/4#0", "status": "completed", "min_global_steps": 7, "max_global_steps": 7}
    assert [(out.reward_score, out.num_turns) for out in outputs] == [(1, 4), (1, 2), (1, 4)]
    assert [out.extra_fields for out in outputs] == [{**about, "reward_extra_info": {}}] * 3 and said() == []
    service.segments = 1
    assert verl_run(verl, settings()).extra_fields == about, "one row asks for nothing"


PARTS = {"rewardComponents": {"state": {"value": 1, "weight": 0.5}, "style": {"value": 2.0, "weight": 0.25}}}


def test_verl_gets_the_components_where_its_trainer_logs_them(monkeypatch):
    module = import_shim(monkeypatch, "verl_rows")
    settings_of = import_shim(monkeypatch, "verl_settings")
    values = {"state": 1, "style": 2.0}
    assert [out.extra_fields["reward_extra_info"] for out in module.to_output(attempt_of(2, **PARTS), 9)] == [values] * 2
    assert module.to_output(attempt_of(1, **PARTS), 9, True).extra_fields["reward_extra_info"] == values
    assert "reward_extra_info" not in module.to_output(attempt_of(1, **PARTS), 9).extra_fields
    assert "reward_extra_info" not in module.to_output(attempt_of(1), 9, True).extra_fields
    assert [settings_of.takes_components(verl_config(use_v1=one)) for one in (True, False)] == [True, False]


def test_openrlhf_and_art_log_the_components(monkeypatch, said):
    answer = import_shim(monkeypatch, "openrlhf").to_answer(attempt_of(1, **PARTS))
    assert answer["extra_logs"] == {"rows_left_out": 0.0, "tokens_left_out": 0.0, "rewards/state": 1.0, "rewards/style": 2.0}
    trajectory = import_shim(monkeypatch, "art").to_trajectory(attempt_of(1, **PARTS))
    assert trajectory.metrics == {"rows": 1, "sampled_tokens": 4, "rewards/state": 1.0, "rewards/style": 2.0}


def test_trl_async_logs_the_components(monkeypatch):
    (sample,) = import_shim(monkeypatch, "trl_sample").to_samples(attempt_of(1, **PARTS), 0.5, 0)
    assert sample.metrics == {"reward": 1.0, "rows": 1.0, "rewards/state": 1.0, "rewards/style": 2.0}


def test_verl_drops_rows_without_a_trained_token_before_its_limit(monkeypatch):
    to_output = import_shim(monkeypatch, "verl_rows").to_output
    attempt = attempt_of(3)
    attempt.rows[2]["promptLength"] = 1
    outputs = to_output(attempt, 2)
    assert [out.response_ids for out in outputs] == [[10, 11], [10, 11]]
    assert [out.extra_fields["status"] for out in outputs] == ["truncated"] * 2
    alone = attempt_of(2)
    alone.rows[1]["promptLength"] = 1
    assert to_output(alone, 2).response_ids == [10, 11], "what is left is one row"
    alone.rows[0]["promptLength"] = 1
    with pytest.raises(Unfit, match="shop/train/4#0 has no sampled token within response_length=2: raise it"):
        to_output(alone, 2)


def test_verl_names_the_settings_that_several_rows_need(service, monkeypatch, said):
    verl = import_shim(monkeypatch, "verl")
    with pytest.raises(Unfit) as error:
        verl_run(verl, verl_config(use_v1=False, estimator="rloo", mode="seq-mean-token-mean", dynamic=False))
    assert str(error.value).split(": ")[1] == (
        "set trainer.use_v1=True; set algorithm.adv_estimator=grpo; set actor_rollout_ref.actor.loss_agg_mode=token-mean; "
        "set actor_rollout_ref.actor.use_dynamic_bsz=True")
    for _ in range(2):
        verl_run(verl, verl_config(mini=16))
    (warning,) = said()
    assert "ppo_mini_batch_size=16 cuts a step" in warning and "at least data.train_batch_size=16 times" in warning


def skyrl_generate(skyrl, cfg, count=2):
    batch = {"env_extras": [{"task_index": 4}] * count, "trajectory_ids": [Named("uid", place) for place in range(count)]}
    return asyncio.run(skyrl.TurnwrightGenerator(cfg).generate(batch))


def test_skyrl_gets_adjacent_rows_and_their_last_marked(service, monkeypatch):
    skyrl = import_shim(monkeypatch, "skyrl")
    service.segments, service.masked, service.rewards = 4, (3,), {0: 1, 1: 1}
    out = skyrl_generate(skyrl, skyrl_config(step_wise=True))
    assert out["is_last_step"] == [False, False, True] * 2
    assert [(one.instance_id, one.repetition_id) for one in out["trajectory_ids"]] == [("uid", 0)] * 3 + [("uid", 1)] * 3
    assert (out["rewards"], out["stop_reasons"]) == ([1.0] * 6, ["stop"] * 6)
    assert (out["prompt_token_ids"], out["response_ids"], out["loss_masks"]) == (PROMPTS * 2, ROWS * 2, MASKS * 2)
    service.segments, service.masked = 1, ()
    assert skyrl_generate(skyrl, skyrl_config(step_wise=True))["is_last_step"] == [True, True], "also of one row"
    assert "is_last_step" not in skyrl_generate(skyrl, skyrl_config())


def test_skyrl_names_the_settings_that_several_rows_need(service, monkeypatch):
    skyrl = import_shim(monkeypatch, "skyrl")
    with pytest.raises(Unfit) as error:
        skyrl_generate(skyrl, skyrl_config(loss_reduction="sequence_mean", dynamic_sampling=settings(type="filter")))
    assert str(error.value).split(": ")[1] == (
        "set generator.step_wise_trajectories=true; set trainer.algorithm.loss_reduction=token_mean; "
        "set trainer.algorithm.dynamic_sampling.type=null")


def test_openrlhf_gets_the_longest_row_and_counts_the_others(service, monkeypatch, said):
    openrlhf = import_shim(monkeypatch, "openrlhf")
    executor = openrlhf.AgentExecutor()
    out = asyncio.run(executor.execute("p", "4", None, 99, None, None))
    assert out["observation_tokens"] == PROMPTS[0] + ROWS[0], "the first of those with the most trained tokens"
    assert out["action_ranges"] == [[3, 5], [7, 9]]
    assert out["extra_logs"] == {"rows_left_out": 2.0, "tokens_left_out": 6.0}
    service.masked = (0,)
    out = asyncio.run(executor.execute("p", "4", None, 99, None, None))
    assert out["observation_tokens"][0] == 201 and out["extra_logs"] == {"rows_left_out": 1.0, "tokens_left_out": 2.0}
    service.segments, service.masked = 1, ()
    out = asyncio.run(executor.execute("p", "4", None, 99, None, None))
    assert out["extra_logs"] == {"rows_left_out": 0.0, "tokens_left_out": 0.0}
    (warning,) = said()
    assert "of the 3 rows of shop/train/4#0 the longest is trained, and 6 of 10 tokens are left out" in warning


def trl_trainer(trl, rank, count, **given):
    about = {"loss_type": "dapo", "beta": 0.0, "use_vllm": False, "mask_truncated_completions": False, **given}
    trainer = trl.RecordedGRPOTrainer()
    vars(trainer).update(vars(make_trainer(rank, count, **about)))
    return trainer


@pytest.mark.parametrize("count", [1, 2])
def test_trl_scores_one_row_an_attempt_and_keeps_all(service, monkeypatch, count):
    service.segments = [1, 3, 2, 1]

    def work(rank, trl):
        trainer = trl_trainer(trl, rank, count)
        out = trl.make_rollout_func()(["4"] * (4 // count), trainer)
        return out["prompt_ids"], out["env_reward"], [[row.prompt_ids for row in rows] for rows in trainer.rows_by_attempt]

    ranks = call(monkeypatch, count, work)
    assert [one for prompts, _, _ in ranks for one in prompts] == [PROMPTS[0]] * 4
    assert [one for _, rewards, _ in ranks for one in rewards] == [1, 0, 1, 0]
    assert [one for _, _, rows in ranks for one in rows] == [PROMPTS[:1], PROMPTS, PROMPTS[:2], PROMPTS[:1]]


def test_trl_names_the_settings_that_several_rows_need_on_every_rank(service, monkeypatch):
    def work(rank, trl):
        wrong = {"loss_type": "grpo", "beta": 0.1, "use_vllm": True, "vllm_importance_sampling_correction": True,
                 "mask_truncated_completions": True}
        return trl.make_rollout_func()(["4"] * 2, trl_trainer(trl, rank, 2, **wrong))

    first, second = call(monkeypatch, 2, work)
    assert str(first).split(": ")[1] == (
        'set loss_type="dapo"; set beta=0.0; set vllm_importance_sampling_correction=False; set mask_truncated_completions=False')
    assert str(second) == f"Rank 0 failed, so rank 1 stops too: Unfit: {first}"
    (plain,) = call(monkeypatch, 1, lambda rank, trl: trl.make_rollout_func()(["4"], make_trainer(
        rank, 1, size=1, loss_type="dapo", beta=0.0, use_vllm=False, mask_truncated_completions=False)))
    assert str(plain).endswith("as one attempt: train with RecordedGRPOTrainer")


def test_trl_fills_a_batch_with_short_masked_rows(monkeypatch):
    spread = import_shim(monkeypatch, "trl_rows").spread
    rows = spread([attempt_of(1).responses(), attempt_of(3).responses()], 6)
    assert [(row.prompt_ids, place) for row, place in rows] == [
        (PROMPTS[0], 0), *((one, 1) for one in PROMPTS), ([1], 0), ([1], 0)]
    assert [(row.response_ids, row.mask, row.logprobs) for row, _ in rows[4:]] == [([10], [0], [0.0])] * 2


def test_trl_async_gives_all_rows_one_advantage_one_group_and_one_version(service, monkeypatch):
    module = import_shim(monkeypatch, "trl_async")
    worker = module.TurnwrightWorker([4], samples=2, ahead=6)
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=30) for _ in range(6)]
    worker.stop()
    assert [sample.advantage for sample in samples] == [0.5] * 3 + [-0.5] * 3
    assert [sample.group_id for sample in samples] == [0] * 6
    assert [sample.input_ids for sample in samples[:3]] == [prompt + row for prompt, row in zip(PROMPTS, ROWS)]
    assert samples[1].metrics == {"reward": 1.0, "rows": 3.0}

    mixed = attempt_of(2)
    mixed.rows[1]["policyVersions"] = ["", "", "", "6", "7"]
    to_samples = sys.modules["turnwright.trainers.trl_sample"].to_samples
    assert [sample.model_version for sample in to_samples(mixed, 0.5, 0)] == [6, 6], "they get stale together"


def test_art_gets_a_trajectory_an_attempt_and_a_history_a_row(service, monkeypatch):
    art = import_shim(monkeypatch, "art")
    service.segments, service.masked = 3, (1,)
    first, second = asyncio.run(art.play_groups([4, "test/7"], samples=2, temperature=0.5))
    assert [[one.reward for one in group] for group in (first, second)] == [[1.0, 0.0]] * 2
    assert sorted((body["tasks"], body["split"], body["samples"]) for body in asked(service)) == [
        ([4], "train", 2), ([7], "test", 2)]
    assert [body["sampling"] for body in asked(service)] == [{"temperature": 0.5}] * 2
    trajectory = first[0]
    assert trajectory.metrics == {"rows": 2, "sampled_tokens": 8}
    assert (trajectory.initial_policy_version, trajectory.final_policy_version) == (7, 7)
    (history,) = trajectory.additional_histories
    for messages, start in ((trajectory.messages_and_choices, [1, 2, 3]), (history.messages_and_choices, [201, 2, 3])):
        assert [part["role"] for part in messages[::2]] == ["user", "user"]
        assert [(part["prompt_token_ids"], part["token_ids"]) for part in messages[1::2]] == [
            (start, [10, 11]), ([*start, 10, 11, 20, 21], [12, 99])]
        assert [[token["logprob"] for token in part["logprobs"]["content"]] for part in messages[1::2]] == [[-0.25] * 2] * 2
    service.policy = ("", None)
    assert asyncio.run(art.play_groups([4], samples=1))[0][0].initial_policy_version is None

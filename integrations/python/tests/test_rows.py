import gzip
import json

import pytest
from stub_service import make_row
from turnwright import MetricsFile, Unfit, group_rows, log_to, pass_hat_k, read_episodes, read_lines, read_rows, step_metrics, to_response
from turnwright import to_dataset, to_numpy, to_pandas
from turnwright.attempt import sampled_versions
from turnwright.slime_dump import write_slime_dump


def rows():
    return [make_row("s/0#0", "s/0", 1), make_row("s/0#1", "s/0", 0), make_row("s/1#0", "s/1", 1, version="5"),
            make_row("s/1#1", "s/1", None)]


def write(file, values, end="\n"):
    file.write_text("".join(json.dumps(value) + "\n" for value in values)[: None if end else -1])


def test_reads_the_rows_of_finished_episodes(tmp_path):
    write(tmp_path / "samples.jsonl", rows())
    write(tmp_path / "episodes.jsonl", [{"rolloutId": row["rolloutId"]} for row in rows()[:3]])
    with open(tmp_path / "samples.jsonl", "a") as out:
        out.write('{"rolloutId": "torn')
    assert list(read_rows(tmp_path)) == rows()[:3]
    assert len(list(read_rows(tmp_path / "samples.jsonl"))) == 4


def test_reads_a_packed_run(tmp_path):
    for name, values in {"samples": rows(), "episodes": rows()[:3]}.items():
        file = tmp_path / f"{name}.jsonl"
        write(file, values)
        content = file.read_bytes()
        # Blocks end anywhere, and the index is in empty members.
        members = [gzip.compress(content[:50]), gzip.compress(content[50:]), gzip.compress(b"")]
        (tmp_path / f"{name}.jsonl.gz").write_bytes(b"".join(members))
        file.unlink()
    assert list(read_rows(tmp_path)) == rows()[:3]
    assert list(read_rows(tmp_path / "samples.jsonl")) == list(read_rows(tmp_path / "samples.jsonl.gz")) == rows()
    # A process that was killed while it packed leaves both files.
    write(tmp_path / "samples.jsonl", rows()[:1])
    assert list(read_rows(tmp_path)) == rows()[:1]


def test_restores_the_texts_of_turns_that_a_line_has_only_in_its_messages(tmp_path):
    messages = [{"role": "assistant", "content": "Answer", "reasoning": "Thought"}, {"role": "tool", "content": "Result"}]
    step = {"source": "read", "observation": [{"contentOf": 1}]}
    text = ["<think>", {"reasoningOf": 0}, "</think>", {"contentOf": 0}, "<call>"]
    turns = [{"text": text, "reasoning": [{"reasoningOf": 0}], "steps": [step]}, {"text": "Bye", "steps": []}]
    write(tmp_path / "episodes.jsonl", [{"rolloutId": "a", "messages": messages, "turns": turns}, {"rolloutId": "b"}])
    first, second = read_episodes(tmp_path)
    assert first["turns"] == [
        {
            "text": "<think>Thought</think>Answer<call>",
            "reasoning": "Thought",
            "steps": [{"source": "read", "observation": "Result"}],
        },
        {"text": "Bye", "steps": []},
    ]
    assert second == {"rolloutId": "b"}


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:15] + b"\xff" + data[16:], lambda data: b"no"])
def test_a_damaged_packed_file_is_named(tmp_path, damage):
    (tmp_path / "samples.jsonl.gz").write_bytes(damage(gzip.compress(b'{"a": 1}\n' * 9)))
    with pytest.raises(ValueError, match=r"Cannot read .*samples\.jsonl\.gz, line \d+: the file is damaged"):
        list(read_lines(tmp_path / "samples.jsonl"))


def test_names_the_line_that_is_none(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\nno\n{"a": 2}\n')
    with pytest.raises(ValueError, match="rows.jsonl, line 2: it is not JSON"):
        list(read_rows(tmp_path / "rows.jsonl"))


@pytest.mark.parametrize("line", [b'{"a": 1\n', b'\xef\xbb\xbf{"a": 1}\n', b'{"a": NaN}\n', b'{"a": "\xff"}\n', b"12\n"])
def test_a_last_line_that_is_whole_and_wrong_is_named(tmp_path, line):
    (tmp_path / "rows.jsonl").write_bytes(b'{"a": 0}\n' + line)
    with pytest.raises(ValueError, match="rows.jsonl, line 2: "):
        list(read_lines(tmp_path / "rows.jsonl"))


def test_a_last_line_that_is_torn_within_a_character_is_passed_over(tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(b'{"a": 9007199254740993}\n{"a": "\xc3')
    assert list(read_lines(tmp_path / "rows.jsonl")) == [{"a": 9007199254740993}]


def test_a_line_that_is_not_utf8_is_named_and_one_that_was_cut_off_within_a_character_is_passed_over(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(b'{"a": "\xff"}\n{"a": 2}\n')
    with pytest.raises(ValueError, match="rows.jsonl, line 1: it is not JSON"):
        list(read_rows(file))
    file.write_bytes('{"a": 1}\n{"a": "é'.encode()[:-1])
    assert list(read_rows(file)) == [{"a": 1}]


def test_a_line_separator_within_a_text_ends_no_line(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"a": "x\u2028y\x85z"}\n', encoding="utf-8")
    assert list(read_rows(tmp_path / "rows.jsonl")) == [{"a": "x\u2028y\x85z"}]


def test_groups_rows_that_stand_together():
    assert [len(group) for group in group_rows(rows())] == [2, 2]
    with pytest.raises(ValueError, match="s/0 are not adjacent"):
        list(group_rows([*rows(), rows()[0]]))


def test_takes_a_row_apart_up_to_its_last_sampled_token():
    response = to_response(make_row("r", "g", 1, version="7", tail=3))
    assert response.prompt_ids == [1, 2, 3] and response.response_ids == [10, 11, 20, 21, 12, 99]
    assert response.mask == [1, 1, 0, 0, 1, 1]
    assert response.logprobs == [-0.25, -0.25, 0, 0, -0.25, -0.25]
    assert response.over_whole(response.mask, 0) == [0, 0, 0, 1, 1, 0, 0, 1, 1]
    assert sampled_versions(response.versions, response.mask) == [7, 7, 7, 7]
    with pytest.raises(Unfit, match="has no sampled token"):
        to_response({**make_row("r", "g", 1), "lossMask": [0] * 9})
    with pytest.raises(Unfit, match="expected a whole number"):
        sampled_versions(["default"], [1])


def test_metrics_leave_out_what_cannot_be_known():
    metrics = step_metrics(rows(), trainer_version=6, ratios=[1.0, 0.9996])
    assert metrics["reward/mean"] == pytest.approx(2 / 3)
    assert metrics["rollout/unscored"] == 1 and metrics["reward/groups_with_signal"] == 0.5
    assert metrics["pass^1"] == 0.75 and metrics["pass^2"] == 0 and "pass^4" not in metrics
    assert metrics["length/sampled_mean"] == 4 and metrics["length/response_mean"] == 6
    assert metrics["calls/malformed_per_turn"] == 0.5
    assert metrics["staleness/mean"] == 2.5 and metrics["staleness/max"] == 3
    assert metrics["ratio/max_deviation"] == pytest.approx(0.0004)
    assert set(step_metrics([rows()[3]])) & {"reward/mean", "pass^1", "staleness/mean"} == set()
    assert metrics == step_metrics(iter(rows()), trainer_version=6, ratios=iter([1.0, 0.9996]))
    assert step_metrics([]) == {"rollout/episodes": 0, "rollout/rows": 0, "rollout/unscored": 0}
    unscored = {**rows()[0], "reward": None}
    assert step_metrics([unscored])["rollout/unscored"] == 1 and "pass^1" not in step_metrics([unscored])


def test_metrics_take_nan_for_no_reward():
    table = [rows()[0], {**rows()[0], "rolloutId": "b#0", "reward": float("nan")}]
    metrics = step_metrics(table)
    assert metrics["rollout/episodes"] == 2 and metrics["rollout/unscored"] == 1
    assert metrics["reward/mean"] == rows()[0]["reward"] and metrics["reward/std"] == 0


def test_pass_hat_k_counts_as_the_report_does():
    assert pass_hat_k([[1, 1, 0], [1, 0, 0]], 2) == pytest.approx(1 / 6)
    # An attempt without a reward is not a failure. A task with fewer than k scored attempts is left out.
    assert pass_hat_k([[1, None, 1], [0, float("nan")]], 1) == 0.5
    assert pass_hat_k([[1, None, 1], [0, float("nan")]], 2) == 1
    assert pass_hat_k([[1, None]], 2) is None and pass_hat_k([], 1) is None and pass_hat_k([[]], 1) is None
    # Success is a reward of 1, within a millionth. A larger reward has another scale.
    assert pass_hat_k([[0.9999995], [1.0000005], [1.1], [2], [0.99]], 1) == 0.4
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"k={wrong}: expected at least 1"):
            pass_hat_k([[1]], wrong)
    with pytest.raises(TypeError, match="k=1.5: expected a whole number"):
        pass_hat_k([[1]], 1.5)


def test_pass_hat_k_of_a_step_is_over_tasks_and_leaves_out_branches():
    again = [{**make_row(f"b/s/0#{n}", "b/s/0", 1), "taskId": "s/0"} for n in range(2)]
    branch = {**make_row("s/1#9", "s/1", 1), "forkedFrom": {"rolloutId": "s/1#0", "turnIndex": 1}}
    elsewhere = {**make_row("s/2#0", "s/2", 0), "forkedFrom": {"rolloutId": "other/2#0", "turnIndex": 1}}
    metrics = step_metrics([*rows(), *again, branch])
    assert step_metrics([elsewhere])["pass^1"] == 0, "forks of another run are attempts of their own"
    assert metrics["pass^1"] == pytest.approx((3 / 4 + 1) / 2) and metrics["pass^2"] == 0.5
    assert metrics["rollout/episodes"] == 7


def test_metrics_count_an_episode_of_several_rows_once():
    roles = ("main", "subagent", "subagent")
    several = [{**make_row("s/0#0", "s/0", 1), "segment": n, "metadata": {"lineage": {"role": role}}}
               for n, role in enumerate(roles)]
    masked = {**several[0], "lossMask": [0] * len(several[0]["lossMask"])}
    metrics = step_metrics([*several, masked, *rows()[1:]])
    one = step_metrics(rows())
    assert one["reward/mean"] == metrics["reward/mean"] and one["pass^2"] == metrics["pass^2"]
    assert metrics["rollout/episodes"] == 4 and metrics["rollout/rows"] == 7
    assert metrics["rows/per_episode_mean"] == 1.5 and metrics["rows/per_episode_max"] == 3
    assert {name: value for name, value in metrics.items() if name.startswith("role/")} == {
        "role/main/rows": 4, "role/main/token_share": pytest.approx(2 / 3), "role/main/reward_mean": pytest.approx(2 / 3),
        "role/subagent/rows": 2, "role/subagent/token_share": pytest.approx(1 / 3), "role/subagent/reward_mean": 1,
    }
    assert not [name for name in one if name.startswith(("role/", "rows/"))]


def test_metrics_have_the_means_of_reward_components():
    parts = {"exact": {"value": 1, "weight": 1.0}, "style": {"value": 0.5, "weight": 0.1}}
    whole = {**rows()[0], "metadata": {"rewardComponents": parts}}
    other = {**rows()[1], "metadata": {"rewardComponents": {"exact": {"value": 0, "weight": 1.0}}}}
    metrics = step_metrics([whole, whole, other, rows()[2]])
    assert {name: value for name, value in metrics.items() if name.startswith("reward/component/")} == {
        "reward/component/exact": 0.5, "reward/component/style": 0.5}


def test_logs_to_files_tensorboard_and_wandb(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    for step, value in ((0, 0.1), (1, 0.2), (1, 0.3)):
        file.write(step, {"reward/mean": value})
    assert file.read() == [{"step": 0, "reward/mean": 0.1}, {"step": 1, "reward/mean": 0.3}]

    assert MetricsFile(tmp_path / "none.jsonl").read() == []
    with open(tmp_path / "metrics.jsonl", "a") as out:
        out.write('{"step": 2, "rew')
    assert [entry["step"] for entry in file.read()] == [0, 1]
    file.write(2, {"loss": float("nan"), "count": 3})
    assert file.read()[2:] == [{"step": 2, "loss": None, "count": 3}]

    class Board:
        def __init__(self):
            self.seen = []

        def add_scalar(self, *call):
            self.seen.append(call)

    class Run:
        def log(self, metrics, step):
            self.seen = (metrics, step)

    board, run = Board(), Run()
    log_to(board, 4, {"a": 1})
    log_to(run, 4, {"a": 1})
    assert board.seen == [("a", 1, 4)] and run.seen == ({"a": 1}, 4)


def test_rows_as_arrays_and_tables():
    numpy = pytest.importorskip("numpy")
    array = to_numpy(rows()[0])
    assert array["tokenIds"].dtype == numpy.int32 and array["logprobs"].dtype == numpy.float32
    assert array["lossMask"].tolist() == rows()[0]["lossMask"]
    pytest.importorskip("pandas")
    table = to_pandas(rows())
    assert table["reward"].isna().tolist() == [False, False, False, True]
    assert table["tokenIds"][1] == rows()[1]["tokenIds"]
    pytest.importorskip("datasets")
    dataset = to_dataset(rows())
    assert dataset[3]["reward"] is None and dataset[0]["tokenIds"] == rows()[0]["tokenIds"]
    assert dataset.features["lossMask"].feature.dtype == "int8"


def test_no_rows_are_a_table_without_lines():
    pytest.importorskip("pandas")
    table, filled = to_pandas([]), to_pandas(iter(rows()))
    assert len(table) == 0 and list(table.columns) == list(filled.columns)
    assert [str(kind) for kind in table.dtypes] == [str(kind) for kind in to_pandas(rows()).dtypes]
    assert table["reward"].mean() is not None and list(table.groupby("groupId")) == []
    pytest.importorskip("datasets")
    assert len(to_dataset([])) == 0 and to_dataset([]).features == to_dataset(rows()).features


def test_names_what_is_no_row():
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="Cannot make a table of 's/0#0': expected rows of samples.jsonl"):
        to_pandas([{"rolloutId": "s/0#0", "messages": []}])
    with pytest.raises(ValueError, match="Cannot make a table of 'r'"):
        to_pandas("runs/first")
    pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="Cannot make a table of"):
        to_numpy({})


def test_writes_the_dump_that_slime_loads(tmp_path):
    torch = pytest.importorskip("torch")
    samples = [{"group_index": i // 2, "index": i, "reward": float(i % 2), "tokens": [1, 2]} for i in range(10)]
    done = write_slime_dump(samples, str(tmp_path / "d" / "{rollout_id}.pt"), groups=2)
    assert done == {"files": [str(tmp_path / "d" / f"{n}.pt") for n in (0, 1)], "left_over": 1}
    dump = torch.load(done["files"][1], weights_only=False)
    assert dump == {"rollout_id": 1, "samples": samples[4:8]}
    with pytest.raises(ValueError, match="Sample 1 has no reward"):
        write_slime_dump([samples[0], {**samples[1], "reward": None}], str(tmp_path / "{rollout_id}"), groups=1)
    with pytest.raises(ValueError, match="expected a name with {rollout_id} in it"):
        write_slime_dump(samples, str(tmp_path / "dump.pt"), groups=1)


def test_tasks_as_prompts_for_slime(capsys, monkeypatch):
    from turnwright import slime_tasks

    monkeypatch.setattr("sys.argv", ["slime_tasks", "--tasks", "0-1,7"])
    slime_tasks.main()
    assert [json.loads(line)["prompt"] for line in capsys.readouterr().out.splitlines()] == ["0", "1", "7"]
    for wrong in ("", "1,1", "a", "3-x", "2-1", "5,7-6"):
        with pytest.raises(ValueError):
            slime_tasks.indexes_of(wrong)
    monkeypatch.setattr("sys.argv", ["slime_tasks", "--tasks", "5,7-6"])
    with pytest.raises(SystemExit):
        slime_tasks.main()
    output = capsys.readouterr()
    assert output.out == "" and "Cannot read '7-6': the range ends before it begins" in output.err


def test_tasks_as_rows_of_data_sets(capsys, monkeypatch):
    from turnwright import tasks

    monkeypatch.setattr("sys.argv", ["tasks", "--tasks", "4,7"])
    tasks.main()
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (first["extra_info"]["index"], first["task_index"], first["label"]) == (4, 4, "4")
    assert second["prompt"] == [{"role": "user", "content": "7"}] and "split" not in second
    monkeypatch.setattr("sys.argv", ["tasks", "--split", "test", "--tasks", "4"])
    tasks.main()
    row = json.loads(capsys.readouterr().out)
    assert (row["extra_info"], row["task_index"], row["split"]) == ({"index": 4, "split": "test"}, 4, "test")
    assert (row["label"], row["prompt"]) == ("test/4", [{"role": "user", "content": "test/4"}])
    monkeypatch.setattr("sys.argv", ["tasks", "--tasks", "train"])
    with pytest.raises(SystemExit):
        tasks.main()
    assert "Cannot read 'train': expected an index or a range" in capsys.readouterr().err

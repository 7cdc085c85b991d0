"""Side columns from a folder, an export and the service."""

import asyncio
import json
import sys
import types

import pytest

numpy = pytest.importorskip("numpy")

from fake_trainers import Sample, import_shim
from invented_columns import ALL, adder, kept_of, positions_of, routes_of, specs_of, tops_of
from stub_service import StubService, make_row
from turnwright import Client, ColumnFolder, LoadedColumns, ServiceError, Unfit, read_export, row_columns


@pytest.fixture
def service(monkeypatch):
    with StubService() as server:
        monkeypatch.setenv("TURNWRIGHT_URL", server.url)
        server.policy = (7, None)
        yield server
        server.shutdown()


def with_specs(service, specs):
    service.column_specs, service.add_columns = specs, adder(specs)


def write_folder(folder, specs):
    row, parts = make_row("r#0", "r", 1), {}
    row["columns"] = adder(specs)(row, parts)
    (folder / "columns").mkdir()
    at, lines = 0, []
    for key, content in parts.items():
        lines.append(json.dumps({"hash": key, "file": "a.bin", "at": at, "size": len(content)}) + "\n")
        at += len(content)
    (folder / "columns/a.bin").write_bytes(b"".join(parts.values()))
    (folder / "columns/a.jsonl").write_text("".join(lines))
    (folder / "run.json").write_text(json.dumps({"found": {"columns": specs}}))
    return row


def check(row, found):
    assert found["routedExperts"].tolist() == routes_of(row, 8).tolist()
    assert found["indexerTopK"].tolist() == positions_of(8).tolist()
    assert (found["routedExperts"].dtype, found["indexerTopK"].dtype) == ("uint8", "int32")
    kept, tops = found["keptTokens"], found["topLogprobs"]
    assert kept.counts.tolist() == [0, 0, 0, 4, 1, 0, 0, 4, 1]
    assert kept.ids.tolist() == [one for token in (3, 4, 7, 8) for one in kept_of(row, token)]
    assert kept.offsets().tolist() == [0, 0, 0, 0, 4, 5, 5, 5, 9, 10]
    assert tops.ids.tolist() == [one for token in (3, 4, 7, 8) for _, one in tops_of(row, token)]
    assert tops.logprobs.tolist() == [one for token in (3, 4, 7, 8) for one, _ in tops_of(row, token)]


def test_a_folder_gives_a_rows_arrays(tmp_path):
    row = write_folder(tmp_path, ALL)
    check(row, row_columns(row, ColumnFolder(tmp_path)))


def test_an_array_of_one_part_is_a_view_of_the_file(tmp_path):
    row = write_folder(tmp_path, specs_of())
    row["columns"]["routedExperts"] = row["columns"]["routedExperts"][:1]
    row["lossMask"] = [0, 0, 0, 1, 1]
    routes = row_columns(row, ColumnFolder(tmp_path))["routedExperts"]
    assert routes.shape == (4, 3, 2)
    assert not routes.flags.owndata


def test_above_256_experts_ids_have_two_bytes(tmp_path):
    row = write_folder(tmp_path, specs_of(300))
    routes = row_columns(row, ColumnFolder(tmp_path))["routedExperts"]
    assert (routes.dtype, routes.tolist()) == ("uint16", routes_of(row, 8, 300).tolist())


def test_damaged_columns_are_named(tmp_path):
    source = ColumnFolder(tmp_path) if (row := write_folder(tmp_path, ALL)) else None
    parts = row["columns"]["routedExperts"]
    for change, message in (({"routedExperts": parts[1:]}, "routedExperts of r#0, row 0: a part begins at token 4, not at 0"),
                            ({"routedExperts": parts[:1]}, "it has 4 rows, expected at least 8"),
                            ({"routedExperts": [{**parts[0], "rows": 3}]}, "a part of 3 rows has 24 bytes, expected 18"),
                            ({"keptTokens": row["columns"]["keptTokens"][:1]}, "keptTokens of r#0, row 0: the trained token 7 has no entry")):
        with pytest.raises(ValueError, match=message):
            row_columns({**row, "columns": {**row["columns"], **change}}, source)
    with pytest.raises(ValueError, match="the row has none, and its run has it"):
        row_columns({**row, "columns": {}}, source)
    with pytest.raises(KeyError, match="copy the folder again"):
        source.read({"hash": "0"})
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(ValueError, match="its run.json names none"):
        ColumnFolder(tmp_path)


def test_bytes_that_were_cut_are_named(tmp_path):
    row = write_folder(tmp_path, {**specs_of(300), "keptTokens": {"maxCount": 4}})
    file, kept = tmp_path / "columns/a.bin", row["columns"]["keptTokens"]
    whole, lines = file.read_bytes(), (tmp_path / "columns/a.jsonl").read_text()
    file.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="a.bin ends before it; copy the folder again"):
        row_columns(row, ColumnFolder(tmp_path))
    file.write_bytes(whole)
    for name, size, message in (("routedExperts", 47, "r#0, row 0: a part of 4 rows has 47 bytes, expected 48"),
                                ("keptTokens", 6, "r#0, row 0: a part of 2 rows does not have the bytes that its counts say")):
        part = row["columns"][name][0]
        short = lines.replace(f'"size": {part["size"]}', f'"size": {size}')
        (tmp_path / "columns/a.jsonl").write_text(short)
        with pytest.raises(ValueError, match=message):
            row_columns(row, ColumnFolder(tmp_path))


def test_changed_bytes_are_named_if_the_folder_is_verified(tmp_path):
    row = write_folder(tmp_path, ALL)
    file = tmp_path / "columns/a.bin"
    source = ColumnFolder(tmp_path, verify=True)
    check(row, row_columns(row, source))
    part = row["columns"]["routedExperts"][0]
    place = next(line for line in map(json.loads, (tmp_path / "columns/a.jsonl").read_text().splitlines())
                 if line["hash"] == part["hash"])
    content = bytearray(file.read_bytes())
    content[place["at"]] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{part['hash']}: its bytes in .*a.bin were changed; copy the folder again"):
        row_columns(row, ColumnFolder(tmp_path, verify=True))
    assert ColumnFolder(tmp_path).read(part).nbytes == part["size"]


def test_parts_of_a_removed_file_are_found_in_another(tmp_path):
    row = write_folder(tmp_path, ALL)
    lines = (tmp_path / "columns/a.jsonl").read_text()
    (tmp_path / "columns/b.jsonl").write_text(lines.replace("a.bin", "b.bin"))
    check(row, row_columns(row, ColumnFolder(tmp_path)))
    (tmp_path / "columns/a.bin").rename(tmp_path / "columns/a.bin.freed")
    with pytest.raises(KeyError, match="its file was freed after its rows were acknowledged"):
        row_columns(row, ColumnFolder(tmp_path))


def test_an_export_gives_its_arrays_in_their_places(tmp_path):
    file = tmp_path / "rows.jsonl"
    (tmp_path / "rows.jsonl.arrays").write_bytes(bytes(range(64)) + numpy.arange(3, dtype="<i4").tobytes())
    file.write_text(json.dumps({"tokens": [1, 2], "nested": [{"routes": {"offset": 2, "shape": [2, 1, 2], "dtype": "uint8"}}],
                                "ids": {"offset": 64, "shape": [3], "dtype": "int32"}}) + "\n")
    (record,) = read_export(file)
    assert (record["tokens"], record["ids"].tolist(), record["ids"].dtype) == ([1, 2], [0, 1, 2], "int32")
    routes = record["nested"][0]["routes"]
    assert (routes.tolist(), routes.dtype) == ([[[2, 3]], [[4, 5]]], "uint8")
    # A write stays in this process.
    routes[0] = 9
    assert (tmp_path / "rows.jsonl.arrays").read_bytes()[:4] == bytes(range(4))
    file.write_text(json.dumps({"ids": {"offset": 64, "shape": [4], "dtype": "int32"}}) + "\n")
    with pytest.raises(ValueError, match="it ends before an array of its rows; export again"):
        list(read_export(file))
    for wrong in ({"offset": 0, "shape": [1], "dtype": "object"}, {"offset": -4, "shape": [1], "dtype": "int32"},
                  {"offset": 0, "shape": [-1], "dtype": "int32"}):
        file.write_text(json.dumps({"ids": wrong}) + "\n")
        with pytest.raises(ValueError, match="is no place of an array; export again"):
            list(read_export(file))


def test_read_export_reads_logprobs(tmp_path):
    values = numpy.array([[-0.5, -1.25], [0, -numpy.inf]], "<f4")
    (tmp_path / "rows.jsonl.arrays").write_bytes(values.tobytes())
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"teacher": {"offset": 0, "shape": [2, 2], "dtype": "float32"}}) + "\n")
    (record,) = read_export(file)
    assert (record["teacher"].dtype, record["teacher"].tolist()) == ("float32", values.tolist())


def test_an_export_that_was_cut_is_refused(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"tokens": [1]}\n{"tokens": [2]')
    with pytest.raises(ValueError, match="rows.jsonl, line 2: it is not JSON"):
        list(read_export(file))
    (tmp_path / "rows.jsonl.arrays").write_bytes(bytes(65))
    file.write_text(json.dumps({"ids": {"offset": 0, "shape": [1], "dtype": "int8"}}) + "\n")
    with pytest.raises(ValueError, match="it has 65 bytes, and the arrays of the rows end at 1, so rows are missing"):
        list(read_export(file))


def test_the_service_gives_parts_whole_and_by_range(service):
    row = make_row("r#0", "r", 1)
    with_specs(service, specs_of())
    part = adder(specs_of())(row, service.column_parts)["routedExperts"][0]
    client, content = Client(service.url, sleep=lambda _: None), service.column_parts[part["hash"]]
    assert client.column_specs() == specs_of()
    service.faults = ["cut", 503, None]
    assert client.columns(part) == content
    assert client.columns(part, 6, 12) == content[6:12]
    assert client.columns(part, 4, 4) == b""
    service.column_parts[part["hash"]] = content[::-1]
    with pytest.raises(ServiceError, match="are not those of the part"):
        client.columns(part)
    with pytest.raises(ServiceError, match="not-found"):
        client.columns({"hash": "0", "size": 1})


def test_a_play_reads_columns_before_it_acknowledges(service):
    from turnwright.trainers.one_play import Play

    with_specs(service, ALL)
    (attempt,) = Play(Client(service.url), split="train", task=4, columns=list(ALL)).scored()
    check(attempt.rows[0], row_columns(attempt.rows[0], attempt.columns))
    paths = [path for _, path, _ in service.calls]
    assert max(place for place, path in enumerate(paths) if "/columns/" in path) < paths.index("/v1/groups/ack")


def test_a_trainer_without_sets_is_refused_kept_tokens(service):
    from turnwright.trainers.one_play import Play

    with_specs(service, ALL)
    with pytest.raises(Unfit, match="its logprobs are over the kept tokens"):
        Play(Client(service.url), split="train", task=4, columns=["routedExperts"]).scored()


def test_columns_that_a_trainer_does_not_take_are_left_out_with_a_warning(service, caplog):
    from turnwright.trainers import several_rows
    from turnwright.trainers.one_play import Play

    with_specs(service, specs_of())
    several_rows._said.clear()
    (attempt,) = Play(Client(service.url), split="train", task=4).scored()
    assert attempt.columns is None
    assert not [path for _, path, _ in service.calls if "/columns/" in path]
    assert "This trainer has no field for routedExperts: they are left out of all rows" in caplog.text


def loaded(specs, **about):
    row, parts = make_row("r#0", "r", 1, **about), {}
    row["columns"] = adder(specs)(row, parts)
    return row, LoadedColumns(specs, parts)


def attempt_of(specs, **about):
    from turnwright import Attempt

    row, source = loaded(specs, **about)
    return Attempt("r#0", "completed", "user-left", 1.0, [row], {}, source), row


def test_forms_pad_and_convert_as_the_exporters_do():
    from turnwright.trainers import column_forms as forms

    attempt, row = attempt_of(specs_of(300))
    whole = forms.whole_routes(attempt, row, 9)
    assert (whole.dtype, whole.shape) == ("int16", (9, 3, 2))
    assert (whole[:8].tolist(), whole[8].tolist()) == (routes_of(row, 8, 300).tolist(), [[0, 0]] * 3)
    assert [forms.expert_type(attempt_of(specs_of(count))[0], ("uint8", "int16")) for count in (256, 257, 32768, 32769)] == [
        "uint8", "int16", "int16", "int32"]
    sets = row_columns(*loaded(ALL))["keptTokens"]
    ids, offsets = forms.ragged(sets, 3, 9)
    assert (ids.dtype, offsets.dtype, offsets.tolist()) == ("int32", "int32", [0, 4, 5, 5, 5, 9, 10])
    assert forms.support(sets, 3, 9, 4).tolist() == [
        [10, 500, 501, 502], [11, -1, -1, -1], [-1] * 4, [-1] * 4, [12, 500, 501, 502], [99, -1, -1, -1]]
    tops = row_columns(*loaded(ALL))["topLogprobs"]
    assert forms.top_lists(tops, 4, 6) == [[[-1.0, 11, None], [-2.0, 12, None]], []]


def test_ids_that_no_engine_computed_are_left_out():
    from turnwright.trainers.column_forms import computed_row

    attempt, row = attempt_of(specs_of(), tail=2)
    cut = computed_row(attempt, row)
    assert (len(row["tokenIds"]), len(cut["tokenIds"]), len(cut["lossMask"]), cut["turns"]) == (11, 9, 9, row["turns"])


def test_miles_is_refused_replays_that_the_service_does_not_record(service, monkeypatch):
    shim = import_shim(monkeypatch, "miles")
    with_specs(service, specs_of())
    for setting, name in (("use_rollout_indexer_replay", "indexerTopK"), ("use_rollout_routing_replay", "routedExperts")):
        if name == "routedExperts":
            service.column_specs = None
        about = types.SimpleNamespace(sample=Sample(index=0, prompt="4", metadata={}),
                                      args=types.SimpleNamespace(**{setting: True}))
        with pytest.raises(Unfit, match=f"miles replays {name} with {setting}, and the service does not record them"):
            asyncio.run(shim.generate(about))
    assert not [path for _, path, _ in service.calls if path == "/v1/batches"]


def test_miles_gets_int32_arrays_and_sglangs_lists(service, monkeypatch):
    shim = import_shim(monkeypatch, "miles")
    # The shims of other trainers import a stand-in of numpy; columns need the library.
    monkeypatch.setitem(sys.modules, "numpy", numpy)
    specs = {name: ALL[name] for name in ("routedExperts", "indexerTopK", "topLogprobs")}
    with_specs(service, specs)
    sample = Sample(index=0, prompt="4", metadata={})
    about = types.SimpleNamespace(sample=sample, sampling_params={}, evaluation=True, args=types.SimpleNamespace(),
                                  state=types.SimpleNamespace(aborted=False))
    own = asyncio.run(shim.generate(about)).samples
    row = make_row("shop/train/4#0", "shop/train/4", 1)
    assert (own.rollout_routed_experts.dtype, own.rollout_routed_experts.tolist()) == ("int32", routes_of(row, 8).tolist())
    assert own.rollout_indexer_topk.tolist() == positions_of(8).tolist()
    tops = own.metadata["opd_student_top_logprobs"]
    assert [len(one) for one in tops] == [2, 2, 0, 0, 2, 2]
    assert tops[0] == [[logprob, token, None] for logprob, token in tops_of(row, 3)]

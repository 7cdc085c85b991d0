"""A teacher's columns of a run's folder."""

import hashlib
import json

import pytest

numpy = pytest.importorskip("numpy")

from turnwright import TeacherFolder

ROW = {"rolloutId": "r#0", "segment": 0, "tokenIds": [5, 6, 7, 8, 9], "promptLength": 2}


def write_folder(folder, count=0, **change):
    """Writes a teacher's files for `ROW`, whose second part does not begin at a multiple of the file's page."""
    logprobs = numpy.array([-0.5, -1.25, -2], "<f4").tobytes()
    tops = numpy.array([2, 1, 2], "<u4").tobytes() + numpy.array([7, 4, 8, 1, 2], "<i4").tobytes() + numpy.array([-0.5, -1, -1.25, -0.25, -1], "<f4").tobytes()
    parts, at, lines, content = {}, 4, [], b"----"
    for name, data in (("teacherLogprobs", logprobs), ("teacherTop", tops)):
        key = hashlib.sha256(data).hexdigest()[:32]
        lines.append(json.dumps({"hash": key, "file": "teacher.bin", "at": at, "size": len(data)}) + "\n")
        parts[name] = {"from": 2, "rows": 3, "policyVersion": "1", "size": len(data), "hash": key, **change}
        content, at = content + data, at + len(data)
    for name in ("columns", "teachers"):
        (folder / name).mkdir()
    (folder / "columns/teacher.bin").write_bytes(content)
    (folder / "columns/teacher.jsonl").write_text("".join(lines))
    (folder / "teachers/large.json").write_text(json.dumps({"name": "large", "topCount": count}))
    old = {"rolloutId": "r#0", "segment": 0, "columns": {}}
    (folder / "teachers/large.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (old, {**old, "columns": parts})))


def test_a_row_gets_views_of_the_files(tmp_path):
    write_folder(tmp_path, count=2)
    found = TeacherFolder(tmp_path, "large").read(ROW)
    assert (found.logprobs.tolist(), found.logprobs.dtype, found.logprobs.flags.owndata) == ([-0.5, -1.25, -2.0], "float32", False)
    assert found.top.counts.tolist() == [0, 0, 2, 1, 2]
    assert (found.top.ids.tolist(), found.top.ids.dtype) == ([7, 4, 8, 1, 2], "int32")
    assert (found.top.logprobs.tolist(), found.top.logprobs.dtype) == ([-0.5, -1.0, -1.25, -0.25, -1.0], "float32")
    assert found.top.offsets().tolist() == [0, 0, 0, 2, 3, 5]


def test_changed_bytes_are_named_if_the_folder_is_verified(tmp_path):
    write_folder(tmp_path)
    assert TeacherFolder(tmp_path, "large", verify=True).read(ROW).logprobs.tolist() == [-0.5, -1.25, -2.0]
    file = tmp_path / "columns/teacher.bin"
    file.write_bytes(file.read_bytes().replace(numpy.float32(-1.25).tobytes(), numpy.float32(-1.5).tobytes()))
    with pytest.raises(ValueError, match="were changed; copy the folder again"):
        TeacherFolder(tmp_path, "large", verify=True).read(ROW)


def test_a_teacher_without_tops_has_none(tmp_path):
    write_folder(tmp_path)
    teacher = TeacherFolder(tmp_path, "large")
    assert (teacher.about["name"], teacher.read(ROW).top) == ("large", None)
    assert teacher.read({**ROW, "promptLength": 5}).logprobs.tolist() == []


def test_what_does_not_fit_is_named(tmp_path):
    write_folder(tmp_path)
    teacher = TeacherFolder(tmp_path, "large")
    with pytest.raises(KeyError, match="large has not scored r#1, row 0; call turnwright score again"):
        teacher.read({**ROW, "rolloutId": "r#1"})
    with pytest.raises(ValueError, match="teacherLogprobs by large of r#0, row 0: its part is .* expected 2 tokens from 3 on"):
        teacher.read({**ROW, "promptLength": 3})
    with pytest.raises(ValueError, match="it has the teachers large"):
        TeacherFolder(tmp_path, "small")

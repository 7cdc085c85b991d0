import json
import math

import pytest
from stub_service import StubService
from turnwright import Client, TrainerLogprobs


@pytest.fixture
def service():
    with StubService() as server:
        yield server
        server.shutdown()


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_writes_one_entry_for_each_token(tmp_path):
    file = tmp_path / "trainer.jsonl"
    with TrainerLogprobs(file, policy_version=7) as out:
        out.write("a", 0, [-1.5, -0.25, -3, -9], first=1, length=4)
        out.write("b", 1, (-1.0, -2.0), mask=[0, 1], policy_version="8")
        out.write("c", 0, [-1.0], length=3)
    assert lines(file) == [
        {"rolloutId": "a", "segment": 0, "logprobs": [None, -1.5, -0.25, -3], "policyVersion": 7},
        {"rolloutId": "b", "segment": 1, "logprobs": [None, -2.0], "policyVersion": "8"},
        {"rolloutId": "c", "segment": 0, "logprobs": [-1.0, None, None], "policyVersion": 7},
    ]


def test_writes_what_is_not_a_number(tmp_path):
    file = tmp_path / "trainer.jsonl"
    with TrainerLogprobs(file) as out:
        out.write("a", 0, [math.nan, -math.inf])
    assert file.read_text() == '{"rolloutId": "a", "segment": 0, "logprobs": [NaN, -Infinity]}\n'


def test_refuses_lengths_that_do_not_match(tmp_path):
    with TrainerLogprobs(tmp_path / "trainer.jsonl") as out:
        with pytest.raises(ValueError, match="2 logprobs have a mask of 1 entries"):
            out.write("a", 0, [-1, -2], mask=[1])
        with pytest.raises(ValueError, match="they begin at token 3 of 2"):
            out.write("a", 0, [], first=3, length=2)
        with pytest.raises(ValueError, match="one row, not of several rows at once"):
            out.write("a", 0, [[-1], [-2]])


def test_writes_routes(tmp_path):
    numpy = pytest.importorskip("numpy")
    file = tmp_path / "trainer.jsonl"
    with TrainerLogprobs(file) as out:
        out.write("a", 0, numpy.float32([-1, -0.5]), routed_experts=numpy.array([[[3, 1]], [[2, 0]], [[9, 9]]]))
        out.write("b", 0, [-1], routed_experts=numpy.array([[[300, 1]]], dtype=numpy.int64))
        with pytest.raises(ValueError, match="expected \\[tokens, layers, experts a token\\]"):
            out.write("c", 0, [-1], routed_experts=[[1, 2]])
    assert [line["routedExperts"] for line in lines(file)] == [
        {"shape": [2, 1, 2], "dtype": "uint8", "base64": "AwECAA=="},
        {"shape": [1, 1, 2], "dtype": "int32", "base64": "LAEAAAEAAAA="},
    ]


def test_writes_lists_of_numpys_numbers(tmp_path):
    numpy = pytest.importorskip("numpy")
    file = tmp_path / "trainer.jsonl"
    with TrainerLogprobs(file, policy_version=numpy.int64(7)) as out:
        out.write("a", numpy.int32(1), list(numpy.float32([-1, -0.5])), mask=list(numpy.array([True, False])))
    assert lines(file) == [{"rolloutId": "a", "segment": 1, "logprobs": [-1.0, None], "policyVersion": 7}]


def test_writes_tensors(tmp_path):
    torch = pytest.importorskip("torch")
    file = tmp_path / "trainer.jsonl"
    with TrainerLogprobs(file) as out:
        values = torch.tensor([-0.5, -0.25], dtype=torch.bfloat16, requires_grad=True)
        out.write("a", 0, values, mask=torch.tensor([True, False]), routed_experts=torch.tensor([[[1]], [[0]]]))
    assert lines(file) == [{"rolloutId": "a", "segment": 0, "logprobs": [-0.5, None],
                            "routedExperts": {"shape": [2, 1, 1], "dtype": "uint8", "base64": "AQA="}}]


def test_posts_rows_and_reads_the_diagnosis(service):
    client = Client(service.url)
    with client.trainer_logprobs(policy_version=7) as out:
        out.write("b1", "a", 0, [-1.5, -0.25], first=1)
        out.write("b2", "a", 1, [-2.0], policy_version="8")
    path, body = [(path, body) for method, path, body in service.calls if method == "POST"][-1]
    assert path == "/v1/trainer-logprobs"
    assert body == [
        {"batch": "b1", "rolloutId": "a", "segment": 0, "logprobs": [None, -1.5, -0.25], "policyVersion": 7},
        {"batch": "b2", "rolloutId": "a", "segment": 1, "logprobs": [-2.0], "policyVersion": "8"},
    ]
    found = client.doctor(lag=0, thresholds={"meanDifference": 0.5})
    assert (found.verdict, found.text, found.has_finding) == ("shifted", "by one", True)
    assert found.figures["counts"] == {"rowCount": 2}
    assert service.calls[-1][1] == "/v1/doctor?meanDifference=0.5&lag=0"


def test_posts_nothing_after_an_exception_and_large_rows_at_once(service):
    client = Client(service.url)
    with pytest.raises(KeyError):
        with client.trainer_logprobs() as out:
            out.write("b1", "a", 0, [-1.5])
            raise KeyError("trainer")
    with client.trainer_logprobs() as out:
        pass
    assert [path for method, path, _ in service.calls if method == "POST"] == []
    with client.trainer_logprobs() as out:
        out.write("b1", "a", 0, [-1.5] * 900_000)
        assert len([path for method, path, _ in service.calls if method == "POST"]) == 1

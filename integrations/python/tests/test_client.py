import http.server
import pickle
import socket
import threading

import pytest
from stub_service import StubService
from turnwright import Client, ServiceError, ServiceUnreachable, Unfit


@pytest.fixture
def service():
    with StubService() as server:
        yield server
        server.shutdown()


def connect(service, **options):
    pauses = []
    client = Client(service.url, sleep=pauses.append, **options)
    return client, pauses


def test_submits_and_streams_groups_to_the_end(service):
    client, _ = connect(service)
    batch = client.submit(key="step-1", split="train", tasks=[4, 7], samples=2, seed=5)
    assert (batch.batch, batch.state, batch.groups) == ("b1", "finished", 2)
    groups = list(client.groups(batch.batch))
    assert [(g.group_id, g.task_index, g.cursor) for g in groups] == [("shop/train/4", 4, 1), ("shop/train/7", 7, 2)]
    assert [a.reward for g in groups for a in g.attempts] == [1, 0, 1, 0]
    assert groups[1].attempts[1].about["seed"] == 8
    assert groups[0].attempts[0].rows[0]["tokenIds"] == [1, 2, 3, 10, 11, 20, 21, 12, 99]


def test_goes_on_from_a_cursor_and_keeps_to_its_batch(service):
    client, _ = connect(service)
    client.submit(key="a", split="train", tasks=[1, 2], samples=1)
    second = client.submit(key="b", split="train", tasks=[3], samples=1)
    assert [g.task_index for g in client.groups(cursor=1)] == [2, 3]
    assert [g.task_index for g in client.groups(second.batch)] == [3]


def test_takes_groups_in_a_trainers_form(service):
    client, _ = connect(service)
    service.rewards, service.faults = {1: None}, [None, "cut"]
    client.submit(key="a", split="train", tasks=[4, 7], samples=2)
    groups = list(client.trainer_groups("verl", "b1"))
    assert [(g.group_id, g.task_index, g.cursor) for g in groups] == [("shop/train/4", 4, 1), ("shop/train/7", 7, 2)]
    assert [g.records for g in groups] == [[{"rollout": "shop/train/4#0"}],
                                           [{"rollout": "shop/train/7#0"}, {"rollout": "shop/train/7#1"}]]
    assert [note["rolloutId"] for g in groups for note in g.notes] == ["shop/train/4#1"]
    assert groups[0].about["format"] == "verl" and "records" not in groups[0].about
    asked = [path for method, path, _ in service.calls if path.startswith("/v1/groups")]
    assert asked == [f"/v1/groups?cursor={n}&batch=b1&format=verl" for n in (0, 1)]
    list(client.trainer_groups("slime", cursor=2, policy_version=9, prompt_text=True))
    assert service.calls[-1][1] == "/v1/groups?cursor=2&format=slime&policyVersion=9&promptText=true"


def test_what_a_trainer_cannot_be_given_is_raised(service):
    client, _ = connect(service)
    service.policy = ("", None)
    client.submit(key="a", split="train", tasks=[4], samples=1)
    with pytest.raises(Unfit, match="Cannot export it: name a version"):
        list(client.trainer_groups("areal", "b1"))


def test_a_stream_that_is_cut_within_a_line_gives_each_group_once(service):
    client, pauses = connect(service)
    client.submit(key="a", split="train", tasks=[1, 2, 3], samples=1)
    service.faults = ["cut", 503]
    assert [g.task_index for g in client.groups("b1")] == [1, 2, 3]
    assert pauses == [0.5, 1.0]
    asked = [path for method, path, _ in service.calls if path.startswith("/v1/groups")]
    assert asked == [f"/v1/groups?cursor={n}&batch=b1" for n in (0, 1, 1)]


def test_an_answer_that_is_lost_makes_no_second_batch(service):
    client, pauses = connect(service)
    service.faults = ["cut", 429]
    assert client.submit(key="a", split="train", tasks=[1], samples=1).batch == "b1"
    assert pauses == [0.5, 1.0] and len(service.batches) == 1
    with pytest.raises(ServiceError, match="key-reused") as caught:
        client.submit(key="a", split="train", tasks=[2], samples=1)
    assert (caught.value.status, caught.value.code) == (409, "key-reused")


def test_gives_up_after_the_retries_and_says_why(service):
    client, pauses = connect(service, retries=2)
    service.faults = [503] * 3
    with pytest.raises(ServiceUnreachable, match=r"GET /v1/health failed 3 times at \S+, last by fault \(503\): as asked"):
        client.health()
    assert pauses == [0.5, 1.0]


def test_what_is_refused_is_not_asked_again(service):
    client, pauses = connect(service)
    with pytest.raises(ServiceError, match="not-found"):
        client.poll("b9")
    assert pauses == [] and len(service.calls) == 1


def test_cancels_pauses_announces_and_acknowledges(service):
    client, _ = connect(service)
    client.submit(key="a", split="train", tasks=[1], samples=1)
    assert client.cancel("b1").state == "cancelled"
    assert [b.state for b in client.cancel_all()] == ["cancelled"] and len(client.batches()) == 1
    client.pause()
    assert client.health() == {"state": "paused", "policyVersion": None}
    client.resume()
    assert client.announce(13, "/weights/13") == 13 and client.announce(13, "/weights/13") == 13
    with pytest.raises(ServiceError, match="version-not-newer"):
        client.announce(12)
    client.acknowledge(1)
    assert service.calls[-1] == ("POST", "/v1/groups/ack", {"cursor": 1})
    assert client.health() == {"state": "running", "policyVersion": 13}


def test_says_why_a_batch_failed(service):
    client, _ = connect(service)
    assert client.submit(key="a", split="train", tasks=[1], samples=1).reason is None
    service.batches["b1"]["described"].update(state="failed", reason="task 1 cannot be drawn")
    failed = client.poll("b1")
    assert (failed.state, failed.reason) == ("failed", "task 1 cannot be drawn")


def test_sends_the_token():
    with StubService(token="t0ken") as service:
        assert Client(service.url, "t0ken").health()["state"] == "running"
        with pytest.raises(ServiceError, match="unauthorized"):
            Client(service.url, "other").health()
        service.shutdown()


def test_refuses_an_address_that_is_none():
    with pytest.raises(ValueError, match="expected http://host:port"):
        Client("127.0.0.1:80")


@pytest.fixture
def closed():
    """An address without a server."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_an_address_where_nothing_listens_is_given_up_after_a_few_seconds(closed):
    pauses = []
    with pytest.raises(ServiceUnreachable, match="Nothing answers at .*ConnectionRefusedError.*TURNWRIGHT_URL"):
        Client(closed, sleep=pauses.append).health()
    assert pauses == [0.5, 1.0]


def test_a_service_that_was_there_is_waited_for_and_the_log_says_so(service, caplog):
    client, pauses = connect(service)
    client.health()
    service.shutdown()
    service.server_close()
    with pytest.raises(ServiceUnreachable, match=r"GET /v1/health failed 9 times at .*ConnectionRefusedError"):
        client.health()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert "GET /v1/health: ConnectionRefusedError" in caplog.messages[0] and "again in 0.5 s" in caplog.messages[0]


def test_a_service_that_is_full_is_asked_for_as_long_as_it_says_so(service):
    client, pauses = connect(service, retries=2)
    service.faults = [429] * 20
    assert client.health()["state"] == "running" and len(pauses) == 20


def test_waits_as_long_as_retry_after_says(service):
    client, pauses = connect(service)
    service.faults, service.retry_after = [429], "7"
    client.health()
    assert pauses == [7.0]


@pytest.mark.parametrize("status", [200, 301])
def test_another_server_at_the_address_is_named_at_once(status):
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"<html>hello\n</html>\n")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        client = Client(f"http://127.0.0.1:{other.server_address[1]}", sleep=lambda _: pytest.fail("asked again"))
        for call in (client.health, lambda: list(client.groups("b1"))):
            with pytest.raises(ServiceError, match="<html>hello") as caught:
                call()
            assert caught.value.status == status
        other.shutdown()


def test_an_address_is_named_without_what_is_secret_in_it(closed):
    secret = closed.replace("//", "//bob:pass-word-7@") + "/turns?key=query-key-7"
    with pytest.raises(ServiceUnreachable, match=f"Nothing answers at {closed}/turns [(]") as caught:
        Client(secret, sleep=lambda seconds: None).health()
    assert "word-7" not in str(caught.value) and "key-7" not in str(caught.value)
    with pytest.raises(ValueError, match="Cannot use 'ftp://host'") as refused:
        Client("ftp://bob:pass-word-7@host?key=query-key-7")
    assert "7" not in str(refused.value)


def test_a_redirect_is_not_followed_and_the_message_says_where_it_leads():
    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(308)
            self.send_header("Location", "https://desk.example/turns/v1/health?key=query-key-7")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(ServiceError, match="redirects to https://desk.example/turns/v1/health: use that address"):
                Client(f"http://127.0.0.1:{server.server_port}", "token").health()
        finally:
            server.shutdown()


def test_refuses_what_cannot_be_sent_and_asks_nothing(service):
    client, pauses = connect(service)
    asked = {"key": "a", "split": "train", "tasks": [1], "samples": 1}
    for more, message in (({"tasks": [1.5]}, "tasks=1.5"), ({"samples": "2"}, "samples='2'"), ({"tasks": "12"}, "tasks='12'"),
                          ({"seed": None}, "seed=None"), ({"sampling": {"temperature": float("nan")}}, "JSON compliant"),
                          ({"sampling": {"temperature": object()}}, "expected a number or a text")):
        with pytest.raises((TypeError, ValueError), match=message):
            client.submit(**{**asked, **more})
    with pytest.raises(ServiceError, match="not-found"):
        client.poll("b 1/../x")
    assert service.calls == [("GET", "/v1/batches/b%201%2F..%2Fx", {})] and pauses == []
    with pytest.raises(ValueError, match="Cannot use the token"):
        Client(service.url, "a\nb")
    for url in ("http://h:port", None, "http://", 8799):
        with pytest.raises(ValueError, match="expected http://host:port"):
            Client(url)


def test_sends_numbers_of_numpy_and_large_ones_exactly(service):
    numpy = pytest.importorskip("numpy")
    client, _ = connect(service)
    client.submit(key="a", split="train", tasks=numpy.arange(2), samples=numpy.int64(1), seed=2**53 - 3,
                  sampling={"temperature": numpy.float32(0.5), "topK": numpy.int32(4)})
    assert service.calls[0][2] == {"key": "a", "split": "train", "tasks": [0, 1], "samples": 1, "seed": 2**53 - 3,
                                   "sampling": {"temperature": 0.5, "topK": 4}}


def test_an_error_of_the_service_goes_from_process_to_process():
    error = pickle.loads(pickle.dumps(ServiceError(409, "key-reused", "The key was used")))
    assert (error.status, error.code, str(error)) == (409, "key-reused", "key-reused (409): The key was used")

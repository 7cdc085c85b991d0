"""`turnwright.connect()`: a running service, and one that it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from turnwright import ServiceFailed, ServiceUnreachable, StartedService, connect
from turnwright import started_service
from turnwright.started_service import find_command

# A stand-in of `turnwright serve`: it listens, answers /v1/health, and ends at SIGTERM.
STAND_IN = """
import http.server, json, signal, sys
assert sys.argv[1:5] == ["serve", "--json", "--port", "0"], sys.argv
if "--fail" in sys.argv:
    print("turnwright: Cannot find environment", file=sys.stderr)
    sys.exit(2)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"state": "serving", "token": self.headers.get("Authorization")}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
signal.signal(signal.SIGTERM, lambda *_: (open(sys.argv[-1], "w").write("stopped"), sys.exit(0)))
print("a note"); print(json.dumps({"type": "listening", "url": f"http://127.0.0.1:{server.server_port}"}), flush=True)
server.serve_forever()
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    file = tmp_path / "stand_in.py"
    file.write_text(STAND_IN)
    return [sys.executable, str(file)]


def test_it_starts_and_stops_a_service(command: list[str], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with connect(serve=["--env", "./e.py", str(mark)], command=command, token="secret") as client:
        assert isinstance(client, StartedService)
        assert client.health() == {"state": "serving", "token": "Bearer secret"}
        assert not mark.exists()
        address = client.url
    assert mark.read_text() == "stopped"
    with pytest.raises(ServiceFailed, match="The service ended with exit code 0"):
        client.health()
    # Another client at the address: it has answered before, so the client would wait for it.
    with pytest.raises(ServiceUnreachable):
        connect(address, retries=0)


def test_a_service_that_fails_is_named_with_its_message(command: list[str]) -> None:
    with pytest.raises(ServiceFailed, match="exit code 2 before it listened:\nturnwright: Cannot find environment"):
        connect(serve=["--fail"], command=command)


def test_an_absent_service_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNWRIGHT_URL", "http://127.0.0.1:9")
    with pytest.raises(ServiceUnreachable, match="Nothing answers at http://127.0.0.1:9 .*start `turnwright serve`"):
        connect(sleep=lambda _: None)


def test_the_program_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(started_service, "__file__", str(tmp_path / "a" / "b" / "c" / "connect.py"))
    with pytest.raises(FileNotFoundError, match="neither turnwright nor npx"):
        find_command()
    program = tmp_path / "turnwright"
    program.write_text("#!/bin/sh\n")
    os.chmod(program, 0o755)
    assert find_command() == [str(program)]

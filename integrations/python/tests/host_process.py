"""The process that plays environments, and the same requests without a process."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


class RequestFailed(Exception):
    """The error that answers a request. `facts` has its type, message, code, file and line."""

    def __init__(self, facts):
        super().__init__(facts["message"])
        self.facts = facts


class HostProcess:
    """Speaks the protocol with `python -m turnwright.host`, one request at a time."""

    def __init__(self, *folders):
        paths = os.pathsep.join([str(PACKAGE), *map(str, folders)])
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "turnwright.host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True, env={**environ, "PYTHONPATH": paths})
        self._next = 1
        assert json.loads(self._process.stdout.readline())["hello"] == 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def ask(self, do, **given):
        self._process.stdin.write(json.dumps({"id": self._next, "do": do, "with": given}) + "\n")
        self._process.stdin.flush()
        self._next += 1
        for line in self._process.stdout:
            message = json.loads(line)
            if "id" in message:
                if "error" in message:
                    raise RequestFailed(message["error"])
                return message["ok"]
        raise AssertionError("the process ended")


class HostHere:
    """Performs the requests in this process, so that a test can look at the state of an episode."""

    def __init__(self):
        from turnwright.host.requests import Requests

        self._loop = asyncio.new_event_loop()
        self._requests = Requests(lambda work: work())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.run_until_complete(self._requests.close_all())
        self._loop.close()

    def ask(self, do, **given):
        async def perform():
            result = self._requests.perform(do, json.loads(json.dumps(given)))
            return await result if asyncio.iscoroutine(result) else result

        return self._loop.run_until_complete(perform())

    def episode(self, name):
        return self._requests._episodes[name]


def open_episode(host, split, index, name="1"):
    return host.ask("open", episode=name, split=split, index=index)


def message_of(said, turn):
    """An assistant message of a script as the protocol has it, with ids for its calls."""
    calls = [{"id": f"call_{turn}_{index}", **call} for index, call in enumerate(said.get("tool_calls", []))]
    return {"role": "assistant", "content": said.get("content"), **({"tool_calls": calls} if calls else {})}


def play(host, split, index, script, name="1"):
    """Plays a script. Returns the opening, the answers to its messages, and the score."""
    opening = open_episode(host, split, index, name)
    answers = []
    for turn, said in enumerate(script):
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        message = message_of(said, turn)
        answers.append(host.ask("turn", episode=name, message=message, finish="stop", usage=usage))
        if answers[-1].get("done"):
            break
    outcome = {"said": [], "answer": "", "calls": [], "isDone": bool(answers and answers[-1].get("done"))}
    return opening, answers, host.ask("score", episode=name, outcome=outcome)

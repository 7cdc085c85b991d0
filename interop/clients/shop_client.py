"""A customer of the shop, for agents in Python."""
import json
import urllib.request


class Shop:
    def __init__(self, url: str) -> None:
        self.url = url
        self.task = self._ask("/task")

    def call(self, name: str, given: dict) -> str:
        return self._ask(f"/tools/{name}", given)["observation"]

    def say(self, text: str):
        """Returns the customer's answer, or None if the conversation is over."""
        return self._ask("/say", {"text": text})["text"]

    def _ask(self, path: str, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data)) as reply:
            return json.load(reply)

"""An agent in Python that talks to the customer and calls tools. Needs the standard library only."""

import json
import os
import urllib.request
from typing import Any


def request(url: str, body: object = None) -> Any:
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as reply:
        return json.load(reply)


policy, here = os.environ["OPENAI_BASE_URL"], os.environ["TURNWRIGHT_TASK_URL"]
task = request(f"{here}/task")
messages = [
    {"role": "system", "content": task["policyText"]},
    {"role": "user", "content": task["firstUserText"]},
]
answer = ""
while answer is not None:
    sampled = request(f"{policy}/chat/completions", {"model": "policy", "messages": messages, "tools": task["tools"]})
    message = sampled["choices"][0]["message"]
    messages.append(message)
    calls = message.get("tool_calls") or []
    for call in calls:
        arguments = json.loads(call["function"]["arguments"])
        result = request(f"{here}/tools/{call['function']['name']}", arguments)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result["observation"]})
        if result["isDone"]:
            raise SystemExit
    if not calls:
        answer = request(f"{here}/say", {"text": message["content"] or ""})["text"]
        messages.append({"role": "user", "content": answer})

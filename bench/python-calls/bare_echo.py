"""Answers each line of JSON with its text: the least that a call of another process costs."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    sys.stdout.write(json.dumps({"id": message["id"], "ok": {"text": message["text"]}}) + "\n")
    sys.stdout.flush()

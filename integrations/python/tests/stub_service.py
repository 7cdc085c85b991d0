"""A small server that speaks docs/service.md, with faults on request."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


def make_row(rollout, group, reward, *, version="3", tail=0, segment=0):
    """A row of samples.jsonl: prompt of 3, two turns of 2 ids around an answer of 2."""
    ids = [1, 2, 3, 10, 11, 20, 21, 12, 99] + [30] * tail
    mask = [0, 0, 0, 1, 1, 0, 0, 1, 1] + [0] * tail
    row = {
        "format": 1, "rolloutId": rollout, "groupId": group, "taskId": group, "segment": segment,
        "tokenIds": ids, "promptLength": 3, "lossMask": mask,
        "logprobs": [-0.25 if bit else 0 for bit in mask],
        "policyVersions": [version if bit else "" for bit in mask],
        "turns": [{"turnIndex": 0, "start": 3, "end": 5}, {"turnIndex": 1, "start": 7, "end": 9}],
        "outcome": "completed", "stopReason": "user-left", "metadata": {"formatErrorCount": 1},
    }
    return row if reward is None else {**row, "reward": reward}


def make_rows(rollout, group, reward, *, count, masked=(), **about):
    """The rows of an attempt: the second has one turn, and the rows of `masked` have no trained token. Rows of one attempt
    differ in their first id. Attempts with several trained rows have their lineage."""
    rows = [make_row(rollout, group, reward, segment=segment, **about) for segment in range(count)]
    for segment, row in enumerate(rows):
        row["tokenIds"][0] += 100 * segment
        if segment == 1:
            row["turns"] = row["turns"][:1]
            for name in ("tokenIds", "lossMask", "logprobs", "policyVersions"):
                row[name] = row[name][:5]
        if segment in masked:
            row["lossMask"], row["policyVersions"] = [0] * len(row["lossMask"]), [""] * len(row["lossMask"])
    trained = [row for row in rows if 1 in row["lossMask"]]
    tokens = sum(sum(row["lossMask"]) for row in trained)
    for place, row in enumerate(trained if len(trained) > 1 else []):
        origin = {"from": {"row": 0, "turn": place - 1, "edge": ("subagent_call", "compaction")[place - 1]}} if place else {}
        row["metadata"]["lineage"] = {"role": "subagent" if place == 1 else "main", "row": place, "rowCount": len(trained),
                                      "attemptTokenCount": tokens, **origin}
    return rows


class StubService(ThreadingHTTPServer):
    """Finishes each batch at once. `faults` are the statuses of the next calls, or "cut"."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, token=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.token, self.faults, self.calls = token, [], []
        self.batches, self.lines, self.policy, self.state = {}, [], None, "running"
        # Results of attempts, by their place among all attempts. The others have the rewards 1 and 0 alternately.
        self.rewards, self.tail = {}, 0
        # Rows of each attempt: a number, or numbers by the place in the group. Then: those without a trained token.
        self.segments, self.masked = 1, ()
        # True if sampling follows the seed, as with --sampling-seed: the first sampled id is the seed.
        self.samples_by_seed = False
        # Refused splits. Then: true if streams of a batch wait until it is cancelled.
        self.refused_splits, self.hangs = (), False
        # Adds side columns to a row. Then: their specs, and the bytes of their parts by hash.
        self.add_columns, self.column_specs, self.column_parts = None, None, {}
        # The cleared batches.
        self.cleared = []
        # The `Retry-After` of a refusal, in seconds.
        self.retry_after = None
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """Ignores a reader that disconnects."""

    def finish(self, batch, body):
        version = "3" if self.policy is None else str(self.policy[0])
        for place, task in enumerate(body["tasks"]):
            group = f"shop/{body['split']}/{task}"
            attempts = []
            for sample in range(body["samples"]):
                number = sum(len(json.loads(line)["group"]["attempts"]) for line in self.lines) + sample
                reward = self.rewards.get(number, (number + 1) % 2)
                rollout = f"{group}#{sample}"
                count = self.segments if isinstance(self.segments, int) else self.segments[sample]
                rows = make_rows(rollout, group, reward, count=count, masked=self.masked, version=version, tail=self.tail)
                for row in rows if self.add_columns else []:
                    row["columns"] = self.add_columns(row, self.column_parts)
                seed = body["seed"] + place * body["samples"] + sample
                for row in rows if self.samples_by_seed else []:
                    row["tokenIds"][3] = seed
                end = {"outcome": "completed", "stopReason": "user-left"} if reward is not None else {
                    "outcome": "failed", "stopReason": "failure",
                    "failure": {"party": "engine", "code": "engine/timeout", "message": "m"}}
                scored = {} if reward is None else {"reward": reward}
                attempts.append({"rolloutId": rollout, "sampleIndex": sample, **end, **scored, "rows": rows,
                                 "environment": "shop", "environmentMs": 500, "promptTokenCount": 10, "cachedTokenCount": 4,
                                 "seed": seed})
            described = {"batch": batch, "key": body["key"], "groupId": group, "taskId": group,
                    "split": body["split"], "taskIndex": task, "attempts": attempts}
            cursor = len(self.lines) + 1
            self.lines.append(json.dumps({"type": "group", "cursor": cursor, "group": described}))


def in_form(line, trainer):
    """Returns a line in a trainer's form: the name of each attempt, without those that cannot be trained on."""
    described = json.loads(line)
    attempts = described["group"].pop("attempts")
    if trainer == "areal" and any(row["policyVersions"][-1] == "" for one in attempts for row in one["rows"]):
        described["group"].update(records=[], notes=[], refused="Cannot export it: name a version")
    else:
        described["group"].update(
            format=trainer, records=[{"rollout": one["rolloutId"]} for one in attempts if "reward" in one],
            notes=[{"rolloutId": one["rolloutId"], "action": "leave-out", "message": "Left out"}
                   for one in attempts if "reward" not in one])
    return json.dumps(described)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if self.server.retry_after is not None:
            self.send_header("Retry-After", self.server.retry_after)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status, code):
        self.answer(status, {"error": {"code": code, "message": "as asked"}})

    def handle_call(self):
        service, url = self.server, urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"
        is_lines = self.headers.get("Content-Type") == "application/x-ndjson"
        body = [json.loads(line) for line in content.splitlines()] if is_lines else json.loads(content)
        service.calls.append((self.command, self.path, body))
        if service.token is not None and self.headers.get("Authorization") != f"Bearer {service.token}":
            return self.refuse(401, "unauthorized")
        fault = service.faults.pop(0) if service.faults else None
        if isinstance(fault, int):
            return self.refuse(fault, "fault")
        if self.command == "GET" and service.hangs and url.path == "/v1/groups":
            batch = parse_qs(url.query)["batch"][0]
            while service.batches[batch]["described"]["state"] != "cancelled":
                time.sleep(0.01)
        with service.lock:
            self.route(service, url, body, fault)
        return None

    do_GET = do_POST = do_DELETE = handle_call

    def route(self, service, url, body, fault):
        parts = url.path.split("/")[2:]
        if self.command == "POST" and parts == ["batches"]:
            if body["split"] in service.refused_splits:
                return self.refuse(400, "bad-request")
            known = next((one for one in service.batches.values() if one["asked"]["key"] == body["key"]), None)
            if known is not None and known["asked"] != body:
                return self.refuse(409, "key-reused")
            if known is None:
                name = f"b{len(service.batches) + 1}"
                known = {"asked": body, "described": {"batch": name, "key": body["key"], "state": "finished",
                                                 "groups": len(body["tasks"]), "finishedGroups": len(body["tasks"])}}
                service.batches[name] = known
                service.finish(name, body)
            if fault == "cut":
                return self.wfile.close()
            return self.answer(201, known["described"])
        if parts[0] == "batches" and len(parts) == 2:
            known = service.batches.get(parts[1])
            if known is None:
                return self.refuse(404, "not-found")
            if self.command == "DELETE":
                known["described"]["state"] = "cancelled"
            return self.answer(200, known["described"])
        if parts == ["batches"]:
            if self.command == "DELETE":
                for one in service.batches.values():
                    one["described"]["state"] = "cancelled"
            return self.answer(200, {"batches": [one["described"] for one in service.batches.values()]})
        if parts == ["clear"]:
            own = [one["described"] for one in service.batches.values() if one["described"]["key"].startswith(body["keyPrefix"])]
            unfinished = [one for one in own if one["state"] in ("queued", "running")]
            for one in unfinished:
                one["state"] = "cancelled"
            service.cleared += [one["batch"] for one in own]
            return self.answer(200, {**body, "cancelledBatches": len(unfinished)})
        if parts == ["groups"]:
            return self.stream(service, parse_qs(url.query), fault)
        if parts == ["groups", "ack"]:
            return self.answer(200, body)
        if parts == ["policy"]:
            asked = (body["version"], body.get("weights"))
            is_older = service.policy is not None and service.policy != asked and asked[0] <= service.policy[0]
            if is_older and not body.get("restart"):
                return self.refuse(409, "version-not-newer")
            service.policy = asked
            return self.answer(200, {"policyVersion": asked[0]})
        if parts in (["pause"], ["resume"]):
            service.state = "paused" if parts == ["pause"] else "running"
            return self.answer(200, {"state": service.state})
        if parts == ["health"]:
            columns = {} if service.column_specs is None else {"columns": service.column_specs}
            return self.answer(200, {"state": service.state, "policyVersion": service.policy and service.policy[0], **columns})
        if parts == ["trainer-logprobs"]:
            return self.answer(200, {"rows": len(body), "trainedTokens": 0})
        if parts == ["doctor"]:
            counts = {"rowCount": len([path for _, path, _ in service.calls if path == "/v1/trainer-logprobs"]) + 1}
            return self.answer(200, {"verdict": "shifted", "text": "by one", "hasFinding": True, "counts": counts})
        if parts[0] == "columns" and len(parts) == 2:
            return self.send_part(service.column_parts.get(parts[1]), fault)
        return self.refuse(404, "not-found")

    def send_part(self, content, fault):
        if content is None:
            return self.refuse(404, "not-found")
        wanted = self.headers.get("Range")
        if wanted is not None:
            first, last = wanted.removeprefix("bytes=").split("-")
            content = content[int(first):int(last) + 1]
        self.send_response(206 if wanted is not None else 200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "cut":
            self.close_connection = True
        self.wfile.write(content[:4] if fault == "cut" else content)
        return None

    def stream(self, service, query, fault):
        cursor, batch = int(query["cursor"][0]), query.get("batch", [None])[0]
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Connection", "close")
        self.end_headers()
        sent = 0
        for line in [] if service.hangs else service.lines[cursor:]:
            if batch is not None and json.loads(line)["group"]["batch"] != batch:
                continue
            if fault == "cut" and sent == 1:
                self.wfile.write(line[:40].encode())
                self.close_connection = True
                return
            line = in_form(line, query["format"][0]) if "format" in query else line
            self.wfile.write((line + '\n{"type":"wait"}\n').encode())
            sent += 1
        state = service.batches[batch]["described"]["state"] if batch else "finished"
        self.wfile.write((json.dumps({"type": "end", "cursor": len(service.lines), "state": state}) + "\n").encode())
        self.close_connection = True

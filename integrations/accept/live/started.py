"""Starts `turnwright serve` with storefront and the repository's policy, for programs that call it."""
import contextlib, json, pathlib, socket, subprocess, tempfile, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]


def free_port():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


@contextlib.contextmanager
def service(*flags, env=None):
    """Yields the service's address and its data folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["node", f"{ROOT}/dist/src/cli/main.js", "serve", "--env", "storefront", "--user", "scripted",
                   "--engine", "reference", "--model", f"{ROOT}/models/storefront-2m", "--out", folder,
                   "--port", "0", "--concurrency", "16", "--json", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        try:
            yield json.loads(process.stdout.readline())["url"], pathlib.Path(folder)
        finally:
            process.terminate()
            process.wait(30)


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def rows_by_key(folder):
    """Returns the only row and the only episode of each batch."""
    found = {}
    for line in open(folder / "service.jsonl"):
        entry = json.loads(line)
        if entry["type"] == "batch":
            own = folder / "batches" / entry["batch"]
            read = lambda name: [json.loads(text) for text in open(own / name)]
            found[entry["request"]["key"]] = (read("samples.jsonl")[0], read("episodes.jsonl")[0])
    return found


def merged(calls):
    """Joins calls (prompt ids, sampled ids, logprobs) into one row: ids, mask, logprobs."""
    ids, mask, logprobs = [], [], []
    for prompt, sampled, own in calls:
        assert prompt[:len(ids)] == ids, "a prompt does not go on from what was there"
        rest = prompt[len(ids):]
        ids, mask, logprobs = ids + rest + sampled, mask + [0] * len(rest) + [1] * len(sampled), logprobs + [0] * len(rest) + own
    return ids, mask, logprobs


def same_row(row, calls):
    """True if the calls equal a row of samples, up to its last sampled token."""
    end = len(row["lossMask"]) - row["lossMask"][::-1].index(1)
    assert merged(calls) == (row["tokenIds"][:end], row["lossMask"][:end], row["logprobs"][:end]), row["rolloutId"]
    return sum(row["lossMask"])

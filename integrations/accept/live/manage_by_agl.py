"""agent-lightning's own server and rollout manager over `turnwright serve --agent-lightning`."""
import os, threading, time
import uvicorn
from agentlightning.server.app import create_app
from agentlightning.verl.agl_rollout_manager import AglRolloutManager
from started import free_port, post, rows_by_key, same_row, service

KEY, TASKS, SAMPLES = "a-key", [0, 1, 2, 3], 4
port = free_port()
config = {"key": KEY, "default_proxy": {"model_name": "policy", "include_log_probs": True, "train": {"temperature": 1}, "val": {"temperature": 1}}}
server = uvicorn.Server(uvicorn.Config(create_app(config), host="127.0.0.1", port=port, log_level="error"))
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.05)
store = f"http://127.0.0.1:{port}"

with service("--agent-lightning", store, "--agent-lightning-key-env", "AGL_KEY", env={**os.environ, "AGL_KEY": KEY}) as (url, folder):
    post(f"{url}/v1/policy", {"version": 5})
    manager = AglRolloutManager(agl_base_url=store, agl_key=KEY, model="policy", step=0, train_rollout_n=SAMPLES,
                                poll_interval_seconds=0.5)
    began = time.monotonic()
    data = {"task_index": TASKS, "split": ["train"] * len(TASKS)}
    done = manager.enqueue_and_wait_until_completed(data, is_train=True)
    seconds = time.monotonic() - began
    rows = rows_by_key(folder)
    assert len(done) == len(TASKS) * SAMPLES == len(rows)
    trained = 0
    for rollout in done:
        row, episode = rows[rollout.rollout_id]
        assert (rollout.rollout_state, rollout.final_reward) == ("succeeded", episode["reward"])
        assert episode["taskIndex"] == rollout.input["task_index"]
        assert {t.metadata["server"]["version"] for t in rollout.triplets} == {5}
        trained += same_row(row, [(t.prompt["token_ids"], t.response["token_ids"], t.response["log_probs"]) for t in rollout.triplets])
    nowhere = manager.enqueue_and_wait_until_completed({"prompt": ["hello"]}, is_train=False)
    assert (nowhere[0].rollout_state, nowhere[0].triplets, nowhere[0].final_reward) == ("failed", [], None)
server.should_exit = True
print(f"agent-lightning: {len(done)} rollouts, {trained} trained tokens in {seconds:.1f} s: accepted")

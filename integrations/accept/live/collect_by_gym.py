"""NeMo Gym's own rollout collection over `turnwright serve`, each answer checked against its response types."""
import asyncio, sys, time
from omegaconf import OmegaConf
from nemo_gym.base_resources_server import BaseVerifyResponse
from nemo_gym.config_types import AggregateMetrics, BaseServerConfig
from nemo_gym.rollout_collection import RolloutCollectionHelper
from nemo_gym.server_utils import ServerClient
from started import post, rows_by_key, same_row, service

TASKS, SAMPLES = [0, 1, 2, 3], 4


async def collect(host, port):
    at = {"host": host, "port": port, "entrypoint": "app.py"}
    config = OmegaConf.create({
        "turnwright": {"responses_api_agents": {"turnwright": at}},
        # Gym 0.7 asks an agent through the environment server in front of it. One address is both.
        "turnwright_environment": {"environment_servers": {"legacy_agent": {
            **at, "agent_server": {"type": "responses_api_agents", "name": "turnwright"}}}},
    })
    helper = RolloutCollectionHelper()
    client = ServerClient(head_server_config=BaseServerConfig(host=host, port=port), global_config_dict=config)
    object.__setattr__(helper, "setup_server_client", lambda *_: client)
    rows = [{"task_index": task, "split": "train", "agent_ref": {"name": "turnwright"}, "_ng_task_index": task,
             "_ng_rollout_index": sample, "responses_create_params": {"input": [], "temperature": 1.0}}
            for task in TASKS for sample in range(SAMPLES)]
    return [await one for one in helper.run_examples(rows)]


with service() as (url, folder):
    post(f"{url}/v1/policy", {"version": 5})
    began = time.monotonic()
    host, port = url.removeprefix("http://").split(":")
    done = asyncio.run(collect(host, int(port)))
    seconds = time.monotonic() - began
    rows = {row["tokenIds"].__repr__(): (row, episode) for row, episode in rows_by_key(folder).values()}
    assert len(done) == len(TASKS) * SAMPLES
    trained, rewards = 0, []
    for asked, result in done:
        checked = BaseVerifyResponse.model_validate(result)
        assert [type(item).__name__ for item in checked.response.output] == ["NeMoGymResponseOutputMessageForTraining"] * len(checked.response.output)
        calls = [(item.prompt_token_ids, item.generation_token_ids, item.generation_log_probs) for item in checked.response.output]
        ends = [pair for pair in rows.values() if pair[0]["tokenIds"][:len(calls[-1][0])] == calls[-1][0]
                and pair[0]["tokenIds"][len(calls[-1][0]):][:len(calls[-1][1])] == calls[-1][1]]
        row, episode = ends[0]
        assert (episode["taskIndex"], episode["reward"], result["policy_versions"]) == (asked["task_index"], checked.reward, ["5"])
        trained += same_row(row, calls)
        rewards.append(checked.reward)
    expected = [{"_ng_task_index": asked["task_index"], "reward": result["reward"]} for asked, result in done]
    metrics = AggregateMetrics.model_validate(post(f"{url}/aggregate_metrics", {"verify_responses": expected}))
    assert abs(metrics.key_metrics["mean/reward"] - sum(rewards) / len(rewards)) < 1e-9, metrics
print(f"nemo-gym: {len(done)} rollouts, {trained} trained tokens in {seconds:.1f} s: accepted")

"""agent-lightning: the routes of an attempt's events by its own store, and the batch of its verl adapter."""
from column_rows import *

import sys

sys.path[:0] = [f"{ROOT}/pkgs/agentlightning", f"{ROOT}/pkgs/verl"]
import torch
from agentlightning.server.routes import events as store
from agentlightning.verl.agl_rollout_manager import CompletedRollout, Triplet
from agentlightning.verl.rollout_adapter import RolloutAdapter

run = Run(("routedExperts",))
LONGEST = 64


def completed(number, record):
    """Returns the rollout as the manager reads it from the store, which keeps the last routes of a trajectory alone."""
    rollout = record["id"]
    store._rollouts[rollout], store._events[rollout] = None, {}
    for event in record["events"]:
        store.record_event(rollout, "0", event["event_type"], event["data"])
    kept = store._dedupe_model_requests_by_prompt_token_ids([store._to_triplet_format(one) for one in store._events[rollout]["0"]])
    calls = [event.data for event in kept if event.event_type == "model_request"]
    triplets = [Triplet(prompt={"token_ids": call["prompt_token_ids"]}, response={
        "token_ids": call["response_token_ids"], "log_probs": call["response_log_probs"],
        "routed_experts": call.get("routed_experts")}) for call in calls]
    return CompletedRollout(rollout_id=rollout, data_id=run.rows[rollout][0][0]["groupId"], step=0, sample_idx_in_step=number,
                            enqueue_time=0.0, triplets=triplets, final_reward=kept[-1].data["value"])


def batch_of(rollouts):
    adapter = RolloutAdapter(max_prompt_length=LONGEST, max_response_length=LONGEST, device=torch.device("cpu"), pad_token_id=0,
                             trace_aggregator_level="trajectory", require_routed_experts=True)
    return adapter.get_train_data_batch(rollouts)[0]


rollouts = [completed(number, record) for number, record in enumerate(run.exported())]
batch, seen = batch_of(rollouts), {}
for name, prompt, answer, routes, mask in zip(batch.non_tensor_batch["rollout_id_list"], batch.batch["prompts"],
                                              batch.batch["responses"], batch.batch["routed_experts"], batch.batch["response_mask"]):
    index = seen.setdefault(str(name), 0)
    seen[str(name)] = index + 1
    row = run.rows[str(name)][index][0]
    end, start = len(row["lossMask"]) - row["lossMask"][::-1].index(1), row["promptLength"]
    ids = prompt.tolist()[LONGEST - start:] + answer.tolist()[:end - start]
    run.routes(routes[LONGEST - start:LONGEST + end - start], str(name), index, ids, "events")
    assert int(mask.sum()) == sum(row["lossMask"]) and not routes[LONGEST + end - start - 1].any(), "the last id's routes are zero"
assert seen == {name: len(run.rows[name]) for name in run.scored()[0]}
rollouts[0].triplets[-1].response["routed_experts"] = None
refused("an attempt without routes", lambda: batch_of(rollouts))
run.done("agent-lightning", f" as {batch.batch['routed_experts'].dtype}")

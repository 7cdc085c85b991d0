"""SkyRL: the check of a generator's output, the collation of routes and support, its own packing of routes."""
from column_rows import *

import sys
import types

sys.path.insert(0, f"{ROOT}/pkgs/skyrl")
from skyrl.backends.skyrl_train.utils.routed_experts import ROUTED_EXPERT_DTYPES
from skyrl.train.dataset.preprocess import convert_prompts_responses_to_batch_tensors
from skyrl.train.generators.base import TrajectoryID
from skyrl.train.utils.trainer_utils import validate_generator_output
from turnwright.trainers.skyrl_rows import to_output

S, run = types.SimpleNamespace, Run(("routedExperts", "keptTokens"))
cfg = S(generator=S(step_wise_trajectories=True),
        trainer=S(algorithm=S(loss_reduction="token_mean", dynamic_sampling=S(type=None))))
COLUMNS = ("prompt_token_ids", "response_ids", "rewards", "loss_masks", "rollout_logprobs", "rollout_expert_indices", "rollout_sample_support")


def check(out, names, what):
    """`names` are the attempt and the place of each row."""
    validate_generator_output(len({one.to_string() for one in out["trajectory_ids"]}), out, step_wise=True, routes_expected=True)
    # The trainer spreads a row's reward over its tokens before this step.
    out = {**out, "rewards": [[0.0] * len(ids) for ids in out["response_ids"]]}
    *_, routes, support = convert_prompts_responses_to_batch_tensors(0, *(out[name] for name in COLUMNS))
    at = place = 0
    for number, (name, index) in enumerate(names):
        prompt, response = out["prompt_token_ids"][number], out["response_ids"][number]
        length = len(prompt) + len(response)
        run.routes(routes.values[at:at + length], name, index, prompt + response, what)
        for kept, got in zip(run.kept(name, index, len(prompt), length), support.values[place:place + len(response)].tolist()):
            assert [one for one in got if one != -1] == kept and got[len(kept):] == [-1] * (len(got) - len(kept)), f"{what} of {name}: support"
        at, place = at + length, place + len(response)
    assert (at, place) == (len(routes.values), len(support.values))


(batch,) = run.exported()
batch["trajectory_ids"] = [TrajectoryID(**one) for one in batch["trajectory_ids"]]
names, seen = [], {}
for one in batch["trajectory_ids"]:
    name = f"{one.instance_id}#{one.repetition_id}"
    names.append((name, seen.setdefault(name, 0)))
    seen[name] += 1
assert all(routes.dtype in ROUTED_EXPERT_DTYPES for routes in batch["rollout_expert_indices"])
check(batch, names, "export")
found, _ = run.scored()
attempts = [run.attempt(name) for name in found]
ids = [TrajectoryID(instance_id=a.rows[0]["groupId"], repetition_id=int(a.rollout_id.rsplit("#")[1])) for a in attempts]
check(to_output(attempts, ids, cfg), [(a.rollout_id, index) for a in attempts for index in range(a.row_count)], "live")


def wrong(**change):
    validate_generator_output(len(found), {**batch, **change}, step_wise=True, routes_expected=True)


refused("no routes", lambda: wrong(rollout_expert_indices=None))
refused("routes that end early", lambda: wrong(rollout_expert_indices=[one[:-1] for one in batch["rollout_expert_indices"]]))
refused("support of sampled tokens only", lambda: wrong(rollout_sample_support=[one[:1] for one in batch["rollout_sample_support"]]))
run.done("skyrl", f" as {batch['rollout_expert_indices'][0].dtype}, with the support of {len(names)} rows")

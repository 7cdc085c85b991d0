"""ART: the routes of choices, and their alignment with a history's ids."""
from column_rows import *

import sys
import types

sys.path.insert(0, f"{ROOT}/pkgs/openpipe-art")
from openai.types.chat.chat_completion import Choice
from art.preprocessing.moe_routing import moe_route_dtype
from turnwright.trainers.art import to_trajectory

SOURCE = f"{ROOT}/pkgs/openpipe-art/art"
run = Run(("routedExperts",))
reading = load_defs(f"{SOURCE}/trajectories/_routed_experts.py", ["validate_routes", "_list", "choice_routes"],
                    {"math": __import__("math"), "SimpleNamespace": types.SimpleNamespace, "Any": object})


def check(entries, name, index, what):
    for choice in entries:
        choice = choice if isinstance(choice, Choice) else Choice.model_validate(choice) if "finish_reason" in choice else None
        if choice is None:
            continue
        given = choice.model_extra["art_moe_routing"]["routed_experts"]
        assert np.asarray(given).dtype == moe_route_dtype(run.shape["expertCount"])
        ids, routes = reading["choice_routes"](choice, None)
        assert len(routes) == len(ids) and all(one == -1 for layer in routes[-1] for one in layer), "the last id's routes are missing"
        run.routes(routes, name, index, ids, what)


for record in run.exported():
    name = record["metadata"]["rollout"]
    for index, history in enumerate([record, *record["additional_histories"]]):
        check(history["messages_and_choices"], name, index, "export")
found, _ = run.scored()
for name in found:
    trajectory = to_trajectory(run.attempt(name))
    for index, history in enumerate([trajectory, *trajectory.additional_histories]):
        check([one for one in history.messages_and_choices if isinstance(one, Choice)], name, index, "live")
run.done("art", f" as {moe_route_dtype(run.shape['expertCount'])}")

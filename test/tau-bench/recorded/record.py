"""Records what τ-bench's own code does with data, calls, episodes and user simulations that we invented.

    git clone https://github.com/sierra-research/tau-bench && git -C tau-bench checkout 59a200c6
    python3 -m venv venv && venv/bin/pip install pydantic==2.12.4
    venv/bin/python test/tau-bench/recorded/record.py tau-bench
    npx oxfmt test/tau-bench/recorded

Writes beside itself: `databases.json.gz` (the tables, made here from a seed), `tool-calls.jsonl.gz`,
`episodes.jsonl.gz`, `pass-hat-k.json`, `user-prompts.json` and `user-simulators.jsonl.gz`. τ-bench's texts for its user simulators are
replaced by ours. No model is called: `litellm` is a stand-in that gives scripted replies.
"""

import contextlib
import copy
import gzip
import io
import json
import pathlib
import random
import sys
import types

HERE = pathlib.Path(__file__).parent
CHECKOUT = sys.argv[1]


class Message:
    """A reply of a scripted model."""

    def __init__(self, content):
        self.content = content

    def model_dump(self):
        return {"role": "assistant", "content": self.content}

    def __str__(self):
        return f"Message({self.model_dump()!r})"


class ScriptedModel:
    """Gives scripted replies in place of litellm, and keeps the messages of each call."""

    def __init__(self):
        self.replies = []
        self.calls = []

    def __call__(self, messages, **_):
        self.calls.append(copy.deepcopy(messages))
        choice = types.SimpleNamespace(message=Message(self.replies.pop(0)))
        return types.SimpleNamespace(choices=[choice], _hidden_params={"response_cost": 0})


MODEL = ScriptedModel()
sys.modules["litellm"] = types.SimpleNamespace(completion=MODEL, provider_list=["p"])
sys.path.insert(0, CHECKOUT)

from tau_bench.envs import user as user_module  # noqa: E402
from tau_bench.envs.airline.tools import ALL_TOOLS as AIRLINE_TOOLS  # noqa: E402
from tau_bench.envs.base import Env, consistent_hash, to_hashable  # noqa: E402
from tau_bench.envs.retail.tools import ALL_TOOLS as RETAIL_TOOLS  # noqa: E402
from tau_bench.types import Action, EnvRunResult, Task  # noqa: E402

RANDOM = random.Random(20261128)
pick = RANDOM.choice
some = RANDOM.sample

# --- The data


def address():
    return {
        "address1": f"{RANDOM.randint(1, 99)} {pick(['Main St', 'Elm Rd', 'Ümlaut Weg'])}",
        "address2": pick(["", "Suite 2", 'Flat "B"']),
        "city": pick(["Here", "There", "東京"]),
        "country": "USA",
        "state": pick(["CA", "NY"]),
        "zip": f"1000{RANDOM.randint(0, 9)}",
    }


def price():
    return pick([20.5, 25.0, 80, 30.25, 99.99, 0.1, 12.345])


def retail_data():
    products = {}
    for product in range(1, 7):
        name = ["Lamp", "Rug", "Mug", "Desk", "Fan", "Hat"][product - 1]
        variants = {
            f"{product}0{number}": {
                "item_id": f"{product}0{number}",
                "options": {"color": pick(["red", "blue", "grün"]), "size": pick(["S", "L"])},
                "available": RANDOM.random() < 0.8,
                "price": price(),
            }
            for number in range(1, 6)
        }
        products[f"9{product}"] = {"name": name, "product_id": f"9{product}", "variants": variants}
    users, orders = {}, {}
    for number, (first, last) in enumerate(
        [
            ("Ann", "Lee"),
            ("Bo", "Ray"),
            ("Cy", "Fox"),
            ("Di", "O'Neil"),
            ("Éva", "Kiss"),
            ("Flo", "Lee"),
        ]
    ):
        name = f"{first}_{last}_{number}".lower()
        methods = {
            f"gift_card_{number}": {
                "source": "gift_card",
                "balance": pick([5, 247.0, 60.1]),
                "id": f"gift_card_{number}",
            },
            f"credit_card_{number}": {
                "source": "credit_card",
                "brand": "visa",
                "last_four": f"123{number}",
                "id": f"credit_card_{number}",
            },
            f"paypal_{number}": {"source": "paypal", "id": f"paypal_{number}"},
        }
        mine = []
        for _ in range(4):
            order = f"#W{len(orders) + 1}"
            mine.append(order)
            items = []
            for _ in range(RANDOM.randint(1, 3)):
                product = pick(list(products.values()))
                variant = pick(list(product["variants"].values()))
                items.append(
                    {
                        "name": product["name"],
                        "product_id": product["product_id"],
                        **{k: variant[k] for k in ("item_id", "price", "options")},
                    }
                )
            paid = [
                {
                    "transaction_type": "payment",
                    "amount": sum(item["price"] for item in items),
                    "payment_method_id": pick(list(methods)),
                }
            ]
            orders[order] = {
                "order_id": order,
                "user_id": name,
                "address": address(),
                "items": items,
                "fulfillments": [],
                "status": pick(
                    ["pending", "pending", "delivered", "delivered", "processed", "cancelled"]
                ),
                "payment_history": paid,
            }
        users[name] = {
            "name": {"first_name": first, "last_name": last},
            "address": address(),
            "email": f"{first}{number}@Example.com",
            "payment_methods": methods,
            "orders": mine,
        }
    return {"orders": orders, "products": products, "users": users}


def airline_data():
    airports = ["JFK", "SFO", "ATL", "BOS"]
    flights = {}
    for number in range(1, 15):
        origin, destination = some(airports, 2)
        dates = {}
        for day in range(9, 24):
            status = pick(["available", "available", "available", "delayed", "landed"])
            date = {"status": status}
            if status == "available":
                date["available_seats"] = {
                    cabin: pick([0, 1, 2, 9]) for cabin in ("basic_economy", "economy", "business")
                }
                date["prices"] = {
                    cabin: low + RANDOM.randint(0, 50)
                    for cabin, low in (("basic_economy", 50), ("economy", 100), ("business", 300))
                }
            dates[f"2024-05-{day:02}"] = date
        flights[f"F{number:02}"] = {
            "flight_number": f"F{number:02}",
            "origin": origin,
            "destination": destination,
            "scheduled_departure_time_est": f"{RANDOM.randint(6, 18):02}:00:00",
            "scheduled_arrival_time_est": pick(["12:30:00", "20:00:00", "01:00:00+1"]),
            "dates": dates,
        }
    users, reservations = {}, {}
    for number, (first, last) in enumerate(
        [("Gus", "Ito"), ("Hal", "Ray"), ("Ida", "Böll"), ("Jo", "Lee"), ("Kim", "Fox")]
    ):
        name = f"{first}_{last}_{number}".lower()
        methods = {
            f"credit_card_{number}": {
                "source": "credit_card",
                "brand": "visa",
                "last_four": f"999{number}",
                "id": f"credit_card_{number}",
            },
            f"gift_card_{number}": {
                "source": "gift_card",
                "amount": pick([120, 44.5, 1000]),
                "id": f"gift_card_{number}",
            },
            f"certificate_{number}": {
                "source": "certificate",
                "amount": 100,
                "id": f"certificate_{number}",
            },
        }
        mine = []
        for _ in range(3):
            reservation = f"R{len(reservations):05}"
            mine.append(reservation)
            flight = pick(list(flights.values()))
            date = pick(
                [date for date, entry in flight["dates"].items() if entry["status"] == "available"]
            )
            cabin = pick(["basic_economy", "economy", "business"])
            cost = flight["dates"][date]["prices"][cabin]
            passengers = [{"first_name": first, "last_name": last, "dob": "1990-01-01"}][
                : RANDOM.randint(1, 1)
            ]
            reservations[reservation] = {
                "reservation_id": reservation,
                "user_id": name,
                "origin": flight["origin"],
                "destination": flight["destination"],
                "flight_type": pick(["one_way", "round_trip"]),
                "cabin": cabin,
                "flights": [
                    {
                        "origin": flight["origin"],
                        "destination": flight["destination"],
                        "flight_number": flight["flight_number"],
                        "date": date,
                        "price": cost,
                    }
                ],
                "passengers": passengers,
                "payment_history": [{"payment_id": f"credit_card_{number}", "amount": cost}],
                "created_at": "2024-05-01T00:00:00",
                "total_baggages": RANDOM.randint(0, 3),
                "nonfree_baggages": 0,
                "insurance": pick(["yes", "no"]),
            }
        users[name] = {
            "name": {"first_name": first, "last_name": last},
            "address": address(),
            "email": f"{first}@example.com",
            "dob": "1990-01-01",
            "payment_methods": methods,
            "saved_passengers": [],
            "membership": pick(["gold", "silver", "regular"]),
            "reservations": mine,
        }
    return {"flights": flights, "reservations": reservations, "users": users}


DATA = {"retail": retail_data(), "airline": airline_data()}
TOOLS = {"retail": RETAIL_TOOLS, "airline": AIRLINE_TOOLS}
TOOL_MAPS = {
    name: {tool.get_info()["function"]["name"]: tool for tool in tools}
    for name, tools in TOOLS.items()
}

# --- Calls


def likely(values, other):
    """One of the values, or now and then something else."""
    return pick(values) if RANDOM.random() < 0.9 else other


def expression():
    number = lambda: pick(["1", "2.5", "0.1", "10", "3", "(4 - 6)", "0.375", "100.0"])  # noqa: E731
    text = number()
    for _ in range(RANDOM.randint(0, 3)):
        text += f" {pick('+-*/')} {number()}"
    strange = pick(["1/0", "", "a + b", "2 + ", "1,000 + 1", "2 ** 3", "7 % 4", "1e3", "07"])
    return likely([text], strange)


def retail_arguments(tool, data):
    status = "pending" if "pending" in tool else "delivered"
    order = likely(
        [each for each in data["orders"].values() if each["status"] == status],
        data["orders"]["#W1"],
    )
    user = data["users"][order["user_id"]]
    chosen = some(order["items"], RANDOM.randint(1, len(order["items"])))
    given = [item["item_id"] for item in chosen]
    others = [pick(list(data["products"][item["product_id"]]["variants"])) for item in chosen]
    gift_card = next(method for method in user["payment_methods"] if method.startswith("gift"))
    paid_with = order["payment_history"][0]["payment_method_id"]
    full = {
        "order_id": likely([order["order_id"]], "#W999"),
        "user_id": likely([order["user_id"]], "nobody_0"),
        "product_id": likely(list(data["products"]), "0"),
        "payment_method_id": likely([*user["payment_methods"], gift_card, paid_with], "paypal_99"),
        "reason": likely(["no longer needed", "ordered by mistake"], "bored"),
        "item_ids": likely([given], ["000"]),
        "new_item_ids": likely([others], others[1:]),
        "email": likely([user["email"], user["email"].upper()], "x@example.com"),
        "first_name": user["name"]["first_name"].lower(),
        "last_name": likely([user["name"]["last_name"]], "X"),
        "expression": expression(),
        "thought": "Hm.",
        "summary": "Enough.",
        **address(),
    }
    if tool == "find_user_id_by_name_zip":
        full["zip"] = likely([user["address"]["zip"]], "0")
    return full


def airline_arguments(tool, data):
    user = pick(list(data["users"].values()))
    reservation = data["reservations"][pick(user["reservations"])]
    flight = pick(list(data["flights"].values()))
    date = likely(list(flight["dates"]), "2024-06-01")
    leg = {"flight_number": likely([flight["flight_number"]], "F99"), "date": date}
    methods = list(user["payment_methods"])
    cabin = likely(["basic_economy", "economy", "business"], "first")
    passengers = [{"first_name": 'A "B"', "last_name": "Ç", "dob": "2000-01-01"}] * pick(
        [1, 1, 1, 2]
    )
    insurance, paid_bags = pick(["yes", "no"]), pick([0, 1, 2])
    fare = flight["dates"].get(date, {}).get("prices", {}).get(cabin, 1)
    cost = (
        fare * len(passengers)
        + (30 * len(passengers) if insurance == "yes" else 0)
        + 50 * paid_bags
    )
    split = [
        {"payment_id": methods[0], "amount": cost - 40},
        {"payment_id": methods[1], "amount": 40},
    ]
    return {
        "user_id": likely([user["name"] and reservation["user_id"]], "nobody_0"),
        "reservation_id": likely([reservation["reservation_id"]], "R99999"),
        "origin": flight["origin"],
        "destination": flight["destination"],
        "date": date,
        "flight_type": pick(["one_way", "round_trip"]),
        "cabin": cabin,
        "flights": likely(
            [[leg], [{k: reservation["flights"][0][k] for k in ("flight_number", "date")}]], []
        ),
        "passengers": passengers,
        "payment_methods": likely(
            [[{"payment_id": pick(methods), "amount": cost}], split],
            [{"payment_id": methods[0], "amount": 1}],
        ),
        "payment_id": likely(methods, "credit_card_99"),
        "total_baggages": pick([0, 1, 3, 5]),
        "nonfree_baggages": paid_bags,
        "insurance": insurance,
        "amount": pick([1, 50, 99.5]),
        "expression": expression(),
        "thought": "Hm.",
        "summary": "Enough.",
    }


STRANGE = [
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    ["x"],
    {"a": 1},
    12345678901234567890,
    "é\u2028",
]


def random_call(domain):
    """A call of one of the domain's tools, mostly with arguments that fit the data."""
    name = pick(list(TOOL_MAPS[domain]))
    schema = TOOL_MAPS[domain][name].get_info()["function"]["parameters"]
    pool = (retail_arguments if domain == "retail" else airline_arguments)(name, DATA[domain])
    kwargs = {key: pool[key] for key in schema["properties"]}
    chance = RANDOM.random()
    if kwargs and chance < 0.06:
        del kwargs[pick(list(kwargs))]
    elif kwargs and chance < 0.16:
        kwargs[pick(list(kwargs))] = pick(STRANGE)
    elif chance < 0.19:
        kwargs["surplus"] = 1
    return {"name": name, "kwargs": kwargs}


def hash_of(data):
    return consistent_hash(to_hashable(data))


def call_tool(domain, data, call):
    """Makes a call as `Env.step()` does, and returns the name of the exception that it hides."""
    kwargs = json.loads(json.dumps(call["kwargs"]))
    row = {"name": call["name"], "kwargs_json": json.dumps(kwargs)}
    try:
        row["obs"] = TOOL_MAPS[domain][call["name"]].invoke(data=data, **kwargs)
    except Exception as error:
        row["obs"] = f"Error: {error}"
        row["exc"] = type(error).__name__
    return row


def record_calls(domain, sequences=60, length=14):
    for sequence in range(sequences):
        data = copy.deepcopy(DATA[domain])
        calls, before = [], hash_of(data)
        for _ in range(length):
            row = call_tool(domain, data, random_call(domain))
            try:
                after = hash_of(data)
            except Exception:
                break  # A value that sorts with nothing: the rest of the sequence has no hash.
            if after != before:
                row["hash_after"] = before = after
            calls.append(row)
        yield {"env": domain, "seq": sequence, "calls": calls, "data_hash": before}


# --- Episodes


class ScriptedUser:
    def __init__(self, script):
        self.script = list(script)

    def reset(self, instruction=None):
        return self.script.pop(0)

    def step(self, content):
        return self.script.pop(0)

    def get_total_cost(self):
        return 0.0


def open_env(domain, task, script):
    env = Env(
        lambda: copy.deepcopy(DATA[domain]),
        TOOLS[domain],
        [task],
        "",
        [],
        "human",
        "m",
        task_index=0,
    )
    env.terminate_tools = ["transfer_to_human_agents"]
    env.user = ScriptedUser(script)
    return env


def valid_writes(domain, count):
    """Calls, one after the other, that change the data."""
    data, calls = copy.deepcopy(DATA[domain]), []
    while len(calls) < count:
        call = random_call(domain)
        before, trial = hash_of(data), copy.deepcopy(data)
        row = call_tool(domain, trial, call)
        if "exc" not in row and hash_of(trial) != before:
            calls.append(call)
            data = trial
    return calls


RESPOND = lambda text: {"name": "respond", "kwargs": {"content": text}}  # noqa: E731
TRANSFER = {"name": "transfer_to_human_agents", "kwargs": {"summary": "Enough."}}


def variants_of(domain, wanted):
    """Ways to play a task, by name: the agent's actions and the task's outputs."""
    read = random_call(domain)
    other = valid_writes(domain, 1)
    bye = [RESPOND("Bye")]
    yield "perfect", [*wanted, *bye], []
    yield "missing write", [*wanted[:-1], *bye], []
    yield "other write", [*wanted, *other, *bye], []
    yield "reordered", [*reversed(wanted), *bye], []
    yield "twice", [*wanted, wanted[-1], *bye], []
    yield "reads and thinks", [
        read,
        {"name": "think", "kwargs": {"thought": "1"}},
        *wanted,
        *bye,
    ], []
    yield "transfer", [*wanted, TRANSFER], []
    yield "transfer first", [TRANSFER], []
    yield "transfer with outputs", [RESPOND("It is 1,080."), *wanted, TRANSFER], ["1080"]
    yield "outputs", [*wanted, RESPOND("It costs 1,080 and is a RUG.")], ["1080", "rug"]
    yield "partial outputs", [*wanted, RESPOND("It costs 1080.")], ["1080", "rug"]
    yield "output inside a number", [*wanted, RESPOND("It costs 210805.")], ["1080"]
    yield "output with a comma", [*wanted, RESPOND("1,080")], ["1,080"]
    yield "unknown tool", [{"name": "no_such_tool", "kwargs": {}}, *wanted, *bye], []
    yield "never done", [*wanted], []
    yield "outputs right, data wrong", [RESPOND("1080"), RESPOND("1080")], ["1080"]


def record_episodes(domain, tasks=8):
    for number in range(tasks):
        wanted = valid_writes(domain, 1 + number % 3)
        for kind, actions, outputs in variants_of(domain, wanted):
            said = sum(action["name"] == "respond" for action in actions)
            script = ["Hi", *["And then?"] * (said - 1), pick(["###STOP###", "Bye ###STOP###"])]
            task = {"user_id": "u", "instruction": "x", "actions": wanted, "outputs": outputs}
            yield {"env": domain, "kind": kind, **play(domain, task, actions, script)}


def play(domain, task, actions, script):
    env = open_env(domain, Task(**copy.deepcopy(task)), script)
    row = {
        "task": task,
        "user_script": script,
        "reset_observation": env.reset(0).observation,
        "steps": [],
    }
    row["agent_data_hash_at_reward"] = []
    row["final_env_data_hash"] = ""
    for action in actions:
        kwargs = json.loads(json.dumps(action["kwargs"]))
        step = {"name": action["name"], "kwargs_json": json.dumps(kwargs)}
        response = env.step(Action(name=action["name"], kwargs=kwargs))
        step.update(
            obs=response.observation,
            reward=response.reward,
            done=response.done,
            source=response.info.source,
        )
        info = response.info.reward_info
        if info is not None:
            names = [each.name for each in info.actions]
            step["reward_info"] = {
                "reward": info.reward,
                "info": info.info.model_dump(),
                "action_names": names,
            }
        row["steps"].append(step)
        if response.done:
            data = copy.deepcopy(DATA[domain])
            for each in row["steps"]:
                if each["name"] in TOOL_MAPS[domain]:
                    call_tool(
                        domain,
                        data,
                        {"name": each["name"], "kwargs": json.loads(each["kwargs_json"])},
                    )
            row["agent_data_hash_at_reward"] = [hash_of(data)]
            row["final_env_data_hash"] = env.get_data_hash()
            break
    return row


# --- Metrics


def record_metrics():
    cases = {
        "one trial": [[0, 0, 1.0], [1, 0, 0.0], [2, 0, 1.0]],
        "a task lacks a trial": [[0, 0, 1.0], [0, 1, 1.0], [1, 0, 1.0]],
        "a result appears twice": [[0, 0, 1.0], [0, 0, 1.0], [1, 0, 0.0]],
        "rewards near 1": [[0, 0, 1 - 5e-7], [1, 0, 1 + 5e-7], [2, 0, 1 - 2e-6], [3, 0, 0.5]],
        "trial numbers with gaps": [[0, 3, 1.0], [0, 7, 0.0], [1, 3, 1.0], [1, 7, 1.0]],
        "40 tasks of 8 trials": [
            [task, trial, float(RANDOM.random() < task / 40)]
            for task in range(40)
            for trial in range(8)
        ],
    }
    source = (pathlib.Path(CHECKOUT) / "tau_bench/run.py").read_text()
    from math import comb

    scope = {"EnvRunResult": EnvRunResult, "List": list, "comb": comb}
    exec(source[source.index("def display_metrics") :], scope)
    rows = []
    for kind, results in cases.items():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            scope["display_metrics"](
                [
                    EnvRunResult(task_id=task, trial=trial, reward=reward, info={}, traj=[])
                    for task, trial, reward in results
                ]
            )
        average, _, *lines = printed.getvalue().strip().split("\n")
        rows.append(
            {
                "kind": kind,
                "results": results,
                "average_reward": float(average.split(": ")[1]),
                "pass_hat_k": {
                    line.split("k=")[1].split(":")[0]: float(line.split(": ")[1]) for line in lines
                },
            }
        )
    return rows


# --- User simulators

OURS = {
    "llm": {
        "none": "Play the customer.",
        "with": "Play the customer.\n\nInstruction: DO THIS\n\nStop with ###STOP###.",
    },
    "react": {"none": "Think, then answer.", "with": "Think, then answer.\nWant: DO THIS\n"},
    "verify": "Is this fine?\n{transcript}\n=>\n{response}\n",
    "reflect": "Do better than\n{response}\nafter\n{transcript}\n",
}
SCENARIOS = json.loads((HERE / "user-scenarios.json").read_text())


def with_our_texts():
    """Replaces τ-bench's prompts by ours, and keeps everything that its code does with them."""

    def prompt_of(texts):
        def build(self, instruction):
            return (
                texts["none"]
                if instruction is None
                else texts["with"].replace("DO THIS", instruction)
            )

        return build

    user_module.LLMUserSimulationEnv.build_system_prompt = prompt_of(OURS["llm"])
    user_module.ReactUserSimulationEnv.build_system_prompt = prompt_of(OURS["react"])


def judge_pattern(judge, reply):
    """The texts of a judge's prompt around its transcript and response."""
    MODEL.replies, MODEL.calls = [reply], []
    judge("m", "p", "@RESPONSE@", [{"role": "user", "content": "@TRANSCRIPT@"}])
    text = MODEL.calls[0][0]["content"]
    head, rest = text.split("Customer: @TRANSCRIPT@")
    middle, tail = rest.split("@RESPONSE@")
    return head, middle, tail


def replace_judges(calls, patterns):
    for messages in calls:
        for name, (head, middle, tail) in patterns.items():
            text = messages[0]["content"]
            if len(messages) == 1 and text.startswith(head) and text.endswith(tail):
                transcript, response = text[len(head) : len(text) - len(tail)].split(middle)
                messages[0]["content"] = (
                    OURS[name].replace("{transcript}", transcript).replace("{response}", response)
                )
    return calls


def record_users():
    with_our_texts()
    patterns = {
        "verify": judge_pattern(user_module.verify, "true"),
        "reflect": judge_pattern(user_module.reflect, "Response: x"),
    }
    for scenario in SCENARIOS:
        MODEL.replies = list(scenario["completions"])
        events, simulator = [], None
        for operation, argument in [("construct", None), *scenario["operations"]]:
            MODEL.calls = []
            event = {"op": operation, "arg": argument}
            try:
                if operation == "construct":
                    simulator = user_module.load_user(scenario["strategy"], "m", "p")
                    event["return"] = None
                else:
                    event["return"] = getattr(simulator, operation)(argument)
            except ValueError as error:
                event["raises"] = type(error).__name__
            event["new_calls"] = replace_judges(MODEL.calls, patterns)
            events.append(event)
        yield {
            **{key: scenario[key] for key in ("strategy", "kind", "completions")},
            "events": events,
        }


# --- Files


def write_packed(name, text):
    # A fixed time makes the file the same each time.
    with open(HERE / name, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def main():
    texts = {
        f"{domain}/{table}.json": json.dumps(rows)
        for domain, tables in DATA.items()
        for table, rows in tables.items()
    }
    write_packed("databases.json.gz", json.dumps(texts))
    write_packed(
        "tool-calls.jsonl.gz", lines(row for domain in DATA for row in record_calls(domain))
    )
    write_packed(
        "episodes.jsonl.gz", lines(row for domain in DATA for row in record_episodes(domain))
    )
    (HERE / "pass-hat-k.json").write_text(json.dumps(record_metrics(), indent=1) + "\n")
    (HERE / "user-prompts.json").write_text(json.dumps(OURS, indent=1) + "\n")
    write_packed("user-simulators.jsonl.gz", lines(record_users()))


main()

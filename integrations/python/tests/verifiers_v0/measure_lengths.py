"""An environment with tools, for the old stack of verifiers."""

import verifiers as vf
from datasets import Dataset

METRES = {"km": 1000.0, "cm": 0.01, "mile": 1609.344}


def convert(amount: float, unit: str) -> float:
    """Convert a length to metres.

    Args:
        amount: How much.
        unit: One of km, cm, mile.
    """
    return amount * METRES[unit]


async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def exact(completion, answer, parser) -> float:
    said = parser.parse_answer(completion) or ""
    return 1.0 if answer in said else 0.0


async def brief(completion) -> float:
    return 0.5 if len(completion) > 6 else 1.0


def load_environment():
    asked = {"2 km and 50 cm in metres?": "2000.5", "1 mile and 1 km in metres?": "2609.344"}
    parser = vf.Parser()
    return vf.ToolEnv(
        dataset=Dataset.from_list([{"question": question, "answer": answer} for question, answer in asked.items()]),
        system_prompt="You convert lengths.", tools=[convert, add], max_turns=6, parser=parser,
        rubric=vf.Rubric(funcs=[exact, brief], weights=[1.0, 0.2], parser=parser))

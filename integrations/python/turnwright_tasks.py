"""The taskset for verifiers, which finds it by a module without dots: `taskset.id = "turnwright-tasks"`."""

from turnwright.trainers.verifiers_tasks import TurnwrightTaskset

__all__ = ["TurnwrightTaskset"]

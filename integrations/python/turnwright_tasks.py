"""verifiers finds a taskset by a module without dots: `taskset.id = "turnwright-tasks"`."""

from turnwright.trainers.verifiers_tasks import TurnwrightTaskset

__all__ = ["TurnwrightTaskset"]

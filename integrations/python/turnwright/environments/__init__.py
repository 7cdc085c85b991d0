"""Environments in Python: `Environment` for tools and a state, `TextEnvironment` for texts. No dependencies."""

from .definition import Environment
from .episode import Context, Played
from .errors import BadEnvironment, Refused, refuse
from .text import TextEnvironment, TextEpisode

__all__ = ["BadEnvironment", "Context", "Environment", "Played", "Refused", "TextEnvironment", "TextEpisode", "refuse"]

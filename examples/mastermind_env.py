"""Plays the game of mastermind.py."""

from mastermind import Mastermind
from turnwright.environments import TextEnvironment, TextEpisode


class Game(TextEpisode):
    def __init__(self, seed):
        self.game, self.reward = Mastermind(), 0.0
        self.first = self.game.reset(seed)

    def step(self, text):
        shown, reward, is_over = self.game.step(text)
        self.reward += reward
        return shown, is_over

    def score(self):
        return {"reward": self.reward, "details": {"turns": self.game.turns}}


class MastermindEnvironment(TextEnvironment):
    name, policy, repeatable = "mastermind", "You find codes. Answer with digits alone.", True

    def tasks(self):
        tasks = [{"instruction": f"Find code {seed}.", "seed": seed} for seed in range(120)]
        return {"train": tasks[:100], "test": tasks[100:]}

    def open(self, task, seed):
        return Game(task["seed"])

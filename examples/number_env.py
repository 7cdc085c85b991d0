"""A game in text: guess a number."""

from turnwright import TextEnvironment, TextEpisode


class Number(TextEnvironment):
    name = "number"
    policy = "Guess a number from 1 to 100. Answer with a number alone."

    def tasks(self):
        return [{"instruction": "Guess the number.", "secret": secret} for secret in (42, 7, 99)]

    def open(self, task, seed):
        return Game(task["secret"])


class Game(TextEpisode):
    first = "Which number?"

    def __init__(self, secret):
        self.secret, self.guesses = secret, []

    def step(self, text):
        if not text.strip().isdigit():
            return "Say a number.", False
        self.guesses.append(int(text))
        if self.guesses[-1] == self.secret:
            return "Right.", True
        return ("Lower." if self.guesses[-1] > self.secret else "Higher."), len(self.guesses) == 8

    def score(self):
        return {"reward": self.secret in self.guesses, "details": {"guesses": len(self.guesses)}}

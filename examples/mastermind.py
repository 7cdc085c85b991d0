"""A game, as a library has it: a code of four digits to find."""

import random


class Mastermind:
    def reset(self, seed):
        draw = random.Random(seed)
        self.code = [draw.choice("123456") for _ in range(4)]
        self.turns = 0
        return "Find my code: four digits from 1 to 6."

    def step(self, text):
        """Returns the answer, the reward of the guess, and True if the game is over."""
        guess = [digit for digit in text if digit in "123456"][-4:]
        self.turns += 1
        if guess == self.code:
            return "That is it.", 1.0, True
        right = sum(one == other for one, other in zip(guess, self.code))
        return f"{right} digits are in their place.", 0.0, self.turns == 8

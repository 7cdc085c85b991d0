/** The error if work on a foreign pattern or schema exceeds its step limit. */
export class StepLimitError extends Error {
  override readonly name = "StepLimitError";
}

/** Returns the result of the work, or `undefined` if the work takes more steps than its budget has. */
export function withinSteps<Value>(
  limit: number,
  work: (budget: StepBudget) => Value,
): Value | undefined {
  try {
    return work(new StepBudget(limit));
  } catch (error) {
    if (error instanceof StepLimitError) return undefined;
    throw error;
  }
}

/**
 * Counts steps, so that a foreign pattern or schema stops at the same point on every machine. A time limit would
 * give other results on a slow machine.
 */
export class StepBudget {
  readonly #limit: number;
  #left: number;

  constructor(limit: number) {
    this.#limit = limit;
    this.#left = limit;
  }

  /**
   * Takes steps from the budget.
   *
   * @throws StepLimitError if the budget is used up.
   */
  spend(count = 1): void {
    this.#left -= count;
    if (this.#left < 0) throw new StepLimitError(`it takes more than ${this.#limit} steps`);
  }
}

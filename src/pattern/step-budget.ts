/** An error for work on a pattern or a schema from outside that takes more steps than it may. */
export class StepLimitError extends Error {
  override readonly name = "StepLimitError";
}

/** Returns the result of the work; `undefined` if it takes more steps than its budget has. */
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
 * Counts steps, so that a pattern or a schema from outside ends at the same place on every machine. A
 * limit in milliseconds would give other results on a slow machine.
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
   * @throws StepLimitError where none is left.
   */
  spend(count = 1): void {
    this.#left -= count;
    if (this.#left < 0) throw new StepLimitError(`it takes more than ${this.#limit} steps`);
  }
}

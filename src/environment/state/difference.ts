/** One place where the state that was reached is not the wanted one. JSON-able. */
export interface StateDifference {
  readonly table: string;
  /** The record's id. */
  readonly record: string;
  /** Where in the record, such as `items[0].price`; empty for the record as a whole. */
  readonly field: string;
  /** What was wanted there, of a long value the beginning; absent where nothing was. */
  readonly wanted?: unknown;
  /** What is there, of a long value the beginning; absent where nothing is. */
  readonly got?: unknown;
  /** What tells the two apart where they print alike, such as `int` and `float`. */
  readonly note?: string;
}

/** A call of a tool. JSON-able. */
export interface DifferenceCall {
  readonly name: string;
  /** As Python writes them in JSON, so that 5 and 5.0 stay apart; of long ones the beginning. */
  readonly argumentsText: string;
  /** What the tool answered, where it refused. */
  readonly error?: string;
}

/**
 * What lies between what an episode reached and what its task wanted. An environment that knows says
 * so under `difference` in its score's details. JSON-able.
 */
export interface Difference {
  /** Empty where the state is as wanted. At most a hundred places. */
  readonly state: readonly StateDifference[];
  /** Places beyond those that are listed; absent where all are. */
  readonly moreState?: number;
  /** Wanted calls that were not made with these arguments; those that only read among them. */
  readonly missingCalls: readonly DifferenceCall[];
  /** Calls of tools that can change the state and were not wanted, refused ones among them. */
  readonly extraCalls: readonly DifferenceCall[];
  /** What should have been said to the user and was not. */
  readonly missingOutputs: readonly string[];
}

/** The difference in a score's details, where the environment gives one. */
export function differenceOf(
  details: Readonly<Record<string, unknown>> | undefined,
): Difference | undefined {
  const difference = details?.["difference"];
  if (typeof difference !== "object" || difference === null) return undefined;
  return "state" in difference ? (difference as Difference) : undefined;
}

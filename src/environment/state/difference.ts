/** One place that differs between the reached state and the wanted state. JSON-able. */
export interface StateDifference {
  readonly table: string;
  /** The record's id. */
  readonly record: string;
  /** The place within the record, such as `items[0].price`; empty for the complete record. */
  readonly field: string;
  /** The wanted value, shortened if long. Absent if no value was wanted. */
  readonly wanted?: unknown;
  /** The value at the end of the episode, shortened if long. Absent if the place does not exist. */
  readonly got?: unknown;
  /** The difference of two values that print alike, such as `int` and `float`. */
  readonly note?: string;
}

/** A tool call. JSON-able. */
export interface DifferenceCall {
  readonly name: string;
  /** The arguments as Python writes JSON, so that 5 and 5.0 differ; shortened if long. */
  readonly argumentsText: string;
  /** The tool's answer, if it refused. */
  readonly error?: string;
}

/**
 * The difference between an episode's result and its task's wanted result. An environment may put it into its
 * score's details under `difference`. JSON-able.
 */
export interface Difference {
  /** Empty if the state is as wanted. At most a hundred places. */
  readonly state: readonly StateDifference[];
  /** The number of further places that are not listed. Absent if all are listed. */
  readonly moreState?: number;
  /** Wanted calls, including read-only ones, that were not made with these arguments. */
  readonly missingCalls: readonly DifferenceCall[];
  /** Unwanted calls, including refused ones, of tools that can change the state. */
  readonly extraCalls: readonly DifferenceCall[];
  /** Texts that the agent should have said to the user and did not. */
  readonly missingOutputs: readonly string[];
}

/** Returns the difference in a score's details, if the environment gives one. */
export function differenceOf(
  details: Readonly<Record<string, unknown>> | undefined,
): Difference | undefined {
  const difference = details?.["difference"];
  if (typeof difference !== "object" || difference === null) return undefined;
  return "state" in difference ? (difference as Difference) : undefined;
}

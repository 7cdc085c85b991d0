import type { InputProblem, InputProblemKind } from "./trainer-row.ts";

/** Maximum number of examples that a problem names. */
const mostExamples = 5;

/** Counts problems of the input by kind, and keeps the first examples of each. */
export class ProblemTally {
  readonly #found = new Map<
    InputProblemKind,
    { rowCount: number; tokenCount: number; examples: string[] }
  >();

  /**
   * Adds one line or row.
   *
   * @param example - Names the place.
   * @param tokenCount - Number of tokens, for problems of single values.
   */
  add(kind: InputProblemKind, example: string, tokenCount = 0): void {
    const found = this.#found.get(kind) ?? { rowCount: 0, tokenCount: 0, examples: [] };
    found.rowCount += 1;
    found.tokenCount += tokenCount;
    if (found.examples.length < mostExamples) found.examples.push(example);
    this.#found.set(kind, found);
  }

  /** Returns the problems, in the order in which their kinds were found. */
  problems(): readonly InputProblem[] {
    return Array.from(this.#found, ([kind, { rowCount, tokenCount, examples }]) => ({
      kind,
      rowCount,
      ...(tokenCount > 0 && { tokenCount }),
      examples: [...examples],
    }));
  }
}

/** Sorts problems by the number of rows, largest first. */
export function inOrder(problems: readonly InputProblem[]): readonly InputProblem[] {
  return problems.toSorted((one, other) => other.rowCount - one.rowCount);
}

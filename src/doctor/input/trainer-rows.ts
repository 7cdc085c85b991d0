import { createReadStream } from "node:fs";
import path from "node:path";
import { describeError, UsageError } from "../../errors.ts";
import { splitLines } from "../../text/split-lines.ts";
import { ProblemTally } from "./problem-tally.ts";
import { readTrainerRow } from "./read-trainer-row.ts";
import type { InputProblem, TrainerRow } from "./trainer-row.ts";

/** The trainer's rows, found by rollout and segment. In memory: 8 bytes a token, and routes that are not in files. */
export class TrainerRows {
  readonly #rows = new Map<string, TrainerRow>();
  readonly #problems = new ProblemTally();
  #count = 0;

  /** Number of rows that were added, doubled ones included. */
  get count(): number {
    return this.#count;
  }

  /**
   * Adds a row. If a row is added twice, this is a problem, and the first one counts.
   *
   * @param place - Names the place in messages, such as `line 3`.
   */
  add(row: TrainerRow, place: string): void {
    this.#count += 1;
    const key = keyOf(row);
    if (this.#rows.has(key)) this.#problems.add("doubled-row", `${place}: ${nameOf(row)}`);
    else this.#rows.set(key, row);
  }

  /** Adds a problem of a line that is not a row. */
  addFault(kind: "not-json" | "shape", example: string): void {
    this.#problems.add(kind, example);
  }

  /** Returns the trainer's row of a training row, or `undefined` if none was added. */
  find(row: Pick<TrainerRow, "rolloutId" | "segment">): TrainerRow | undefined {
    return this.#rows.get(keyOf(row));
  }

  /** True if a row has routes. */
  get haveRoutes(): boolean {
    return [...this.#rows.values()].some(({ routedExperts }) => routedExperts !== undefined);
  }

  /** The rows, each once. */
  rows(): Iterable<TrainerRow> {
    return this.#rows.values();
  }

  /** The problems that were found so far. */
  problems(): readonly InputProblem[] {
    return this.#problems.problems();
  }
}

function keyOf({ rolloutId, segment }: Pick<TrainerRow, "rolloutId" | "segment">): string {
  return `${segment} ${rolloutId}`;
}

/** Names a row in messages, such as `storefront/test/0#1, row 0`. */
export function nameOf({ rolloutId, segment }: Pick<TrainerRow, "rolloutId" | "segment">): string {
  return `${rolloutId}, row ${segment}`;
}

/**
 * Reads a file of a trainer's logprobs: JSON lines, one a row (docs/doctor.md).
 *
 * @throws UsageError if the file cannot be read.
 */
export async function readTrainerFile(file: string): Promise<TrainerRows> {
  const rows = new TrainerRows();
  const folder = path.dirname(file);
  let line = 0;
  try {
    for await (const text of splitLines(createReadStream(file), file)) {
      line += 1;
      if (text.trim() === "") continue;
      const row = readTrainerRow(text, folder);
      if ("kind" in row) rows.addFault(row.kind, `line ${line}: ${row.detail}`);
      else rows.add(row, `line ${line}`);
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `Cannot read ${file}: ${describeError(error)}; expected a readable file of the trainer's logprobs, one JSON line a row`,
      { cause: error },
    );
  }
  return rows;
}

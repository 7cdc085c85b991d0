import { RolloutError, type FailureCode, type Party } from "../../errors.ts";
import { PythonFailure, describePythonError } from "./python-failure.ts";

/** The failure code for a result that cannot be written as JSON, by party. */
const unwritable: Partial<Record<Party, FailureCode>> = {
  environment: "environment/bad-result",
  grader: "grader/bad-score",
  user: "user/bad-line",
};

/**
 * Performs a request, and attributes its failure.
 * @param what - The part that is called and its task, such as `Tool book of calendar in task calendar/test/0`.
 * @throws RolloutError with the party, and the file and line in the author's code.
 */
export async function attributed<Result>(
  {
    party,
    what,
    hint = "",
  }: { readonly party: Party; readonly what: string; readonly hint?: string },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof PythonFailure)) throw error;
    throw toRolloutError(error, { party, what, hint });
  }
}

function toRolloutError(
  failure: PythonFailure,
  { party, what, hint }: { readonly party: Party; readonly what: string; readonly hint: string },
): RolloutError {
  const { kind, facts, message, where } = failure;
  const options = { cause: failure };
  switch (kind) {
    case "overdue":
      return new RolloutError(
        `${party}/timeout`,
        `${what}: ${message}${where === "" ? "" : `; it was${where}`}`,
        {
          ...options,
          retryable: true,
        },
      );
    case "too-long":
      return new RolloutError(
        "environment/full",
        `${what}: ${message}, expected a shorter result`,
        options,
      );
    case "died":
    case "protocol": {
      const last = facts?.traceback?.trimEnd().split("\n").at(-1) ?? "";
      const output = last === "" ? "" : `; its last output: ${last.slice(0, 300)}`;
      const code = "environment/unreachable";
      return new RolloutError(
        code,
        `${what}: the Python process failed${where}: ${message}${output}`,
        {
          ...options,
          retryable: true,
        },
      );
    }
    case "raised": {
      const known = facts?.code;
      if (known === "unwritable") {
        return new RolloutError(
          unwritable[party] ?? `${party}/bad-result`,
          `${what}: its result cannot be written as JSON: ${facts!.message}`,
          options,
        );
      }
      if (known?.includes("/") === true) {
        return new RolloutError(
          known as FailureCode,
          `${what}: ${facts!.message}${where}`,
          options,
        );
      }
      return new RolloutError(
        `${party}/exception`,
        `${what} threw${where}: ${facts === undefined ? message : describePythonError(facts)}${hint}`,
        options,
      );
    }
  }
}

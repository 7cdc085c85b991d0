import { PythonError } from "../../packages/python-values/src/python-error.ts";
import type { PythonExceptionName } from "../../packages/python-values/src/python-error.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { bindArguments } from "./bind-arguments.ts";
import type { Tables, TauDomain } from "./tau-domain.ts";

/** The result of a tool call. */
export interface ToolOutcome {
  /** The text that the agent sees; `null` if the original's tool returns `None`. */
  readonly observation: string | null;
  /** The exception that the tool raised, if any. */
  readonly exception?: PythonExceptionName;
}

/** The prefix of the original's answers that refuse or raise. */
export const ERROR_PREFIX = "Error: ";

/**
 * Calls a tool as the original's `Env.step()` does: an exception becomes an `Error: …` observation, and earlier
 * changes stay.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/base.py (`Env.step`).
 *
 * @returns `undefined` if the domain has no such tool.
 */
export function callTool<Database extends Tables>(
  domain: TauDomain<Database>,
  database: Database,
  { name, arguments: given }: { readonly name: string; readonly arguments: PyDict },
): ToolOutcome | undefined {
  const tool = domain.tools.get(name);
  if (tool === undefined) return undefined;
  try {
    const values = bindArguments({ domain: domain.name, tool }, given);
    return { observation: tool.run(database, values) };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return { observation: ERROR_PREFIX + error.message, exception: error.exception };
  }
}

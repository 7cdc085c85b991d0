import type { ColumnSpecs } from "../columns/column-specs.ts";
import { requireColumns } from "../engine/require-columns.ts";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import { askDescription, type AskDescriptionOptions } from "../episode/ask-description.ts";
import { messagesMember } from "../run/require-rows.ts";
import { RolloutError } from "../errors.ts";

/**
 * Requests an engine's description. If that fails, the error names the flag to check.
 * @throws RolloutError if the engine does not answer, or sends an invalid description.
 */
export async function describeEngine(
  engine: Engine,
  options: AskDescriptionOptions = {},
): Promise<EngineDescription> {
  try {
    return await askDescription(engine, options);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    const hint = hintOf(error);
    if (hint === undefined) throw error;
    const { code, retryable, discarded } = error;
    throw new RolloutError(code, `${error.message}; ${hint}`, {
      cause: error,
      retryable,
      discarded,
    });
  }
}

/**
 * Checks that an engine returns a run's side columns.
 *
 * @throws UsageError naming the column, the server and the way to start it.
 * @throws RolloutError if the engine does not answer.
 */
export async function requireRunColumns(
  engine: Engine,
  columns: ColumnSpecs | undefined,
  signal?: AbortSignal,
): Promise<void> {
  if (columns !== undefined) await requireColumns(engine, columns, { ...(signal && { signal }) });
}

/**
 * Returns the engine and the side columns as a run records them. A run without side columns does not record which ones
 * the engine has.
 */
export function engineFacts(
  description: EngineDescription,
  columns: ColumnSpecs | undefined,
): {
  readonly engine: EngineDescription;
  readonly columns?: ColumnSpecs;
  readonly returnsMessages?: true;
} {
  if (description.logprobConvention === undefined) {
    return { engine: description, ...messagesMember };
  }
  if (columns !== undefined) return { engine: description, columns };
  const { columns: _possible, ...engine } = description;
  return { engine };
}

function hintOf({ code, message }: RolloutError): string | undefined {
  if (code === "engine/unauthorized") return "--api-key-env names the variable that holds the key";
  if (/HTTP 40[45]/.test(message))
    return "is it another server that answers at --url, or another --engine?";
  return undefined;
}

import type { PyValue } from "../../packages/python-values/src/value.ts";

/** A tool of a τ-bench domain, as the original defines it. */
export interface TauTool<Database> {
  /** The tool's name; also the name of the original's source file, which some error texts spell. */
  readonly name: string;
  /** The original's class, which the texts of argument errors name. */
  readonly className: string;
  /** The parameters of the original's `invoke()` after `data`, in order; all are required. */
  readonly parameters: readonly string[];
  /**
   * Performs the call; `values[i]` is that of `parameters[i]`.
   *
   * @returns the observation, or `null` if the original returns `None`.
   * @throws PythonError if the original raises.
   */
  run(database: Database, values: readonly PyValue[]): string | null;
}

/** The argument of `defineTool()`: `run()` gets the arguments by name. */
interface TauToolDefinition<Database, Names extends string> {
  readonly name: string;
  readonly className: string;
  readonly parameters: readonly Names[];
  readonly run: (database: Database, values: Readonly<Record<Names, PyValue>>) => string | null;
}

/** Defines a tool; its parameters' names type the arguments of `run()`. */
export function defineTool<Database, const Names extends string>({
  name,
  className,
  parameters,
  run,
}: TauToolDefinition<Database, Names>): TauTool<Database> {
  return {
    name,
    className,
    parameters,
    run(database, values) {
      const byName = Object.fromEntries(
        parameters.map((parameter, index) => [parameter, values[index]]),
      );
      return run(database, byName as Record<Names, PyValue>);
    },
  };
}

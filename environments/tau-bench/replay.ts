import { UsageError } from "../../src/errors.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";
import type { TauEnvironment } from "./tau-environment.ts";

/** A tool call to replay. Its arguments are data, or JSON in Python's dialect. */
export interface ReplayCall {
  readonly name: string;
  readonly arguments?: PyDict;
  /** Integers and floats stay distinct, and `NaN` is a number. */
  readonly argumentsText?: string;
}

/** The results of replayed calls; `observations[i]` and `stateHashes[i]` belong to the i-th call. */
export interface Replay {
  /** `null` if the original's tool returns `None`. */
  readonly observations: readonly (string | null)[];
  /** τ-bench's own hash of the complete database after each call. */
  readonly stateHashes: readonly string[];
}

/**
 * Makes calls on fresh data, without an episode: no call ends it, and `respond` is not a tool.
 *
 * @throws UsageError if a call's arguments cannot be read.
 * @throws the signal's reason if it aborts.
 */
export async function replayCalls(
  environment: TauEnvironment,
  calls: readonly ReplayCall[],
  { signal }: { signal: AbortSignal },
): Promise<Replay> {
  const toolbox = environment.openTools();
  const observations: (string | null)[] = [];
  const stateHashes: string[] = [];
  for (const [index, call] of calls.entries()) {
    signal.throwIfAborted();
    const given = readArguments(call, `calls[${index}]`);
    const outcome = toolbox.call({ name: call.name, arguments: given });
    observations.push(outcome === undefined ? `Unknown action ${call.name}` : outcome.observation);
    stateHashes.push(await toolbox.hash());
  }
  return { observations, stateHashes };
}

/**
 * Returns the arguments of a call from either form; an empty dictionary without arguments.
 *
 * @param where - The call's place, for messages.
 * @throws UsageError if the text is not a JSON object.
 */
export function readArguments(call: ReplayCall, where: string): PyDict {
  if (call.arguments !== undefined) return call.arguments;
  if (call.argumentsText === undefined) return new Map();
  const value = parseArguments(call.argumentsText, where);
  if (!isPyDict(value)) {
    throw new UsageError(`Cannot read ${where}.argumentsText: expected a JSON object`);
  }
  return value;
}

function parseArguments(text: string, where: string): PyValue {
  try {
    return parsePythonJson(text);
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new UsageError(`Cannot read ${where}.argumentsText: ${error.message}`, { cause: error });
  }
}

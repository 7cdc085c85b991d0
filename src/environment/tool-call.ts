import { startDeadline, type Deadline } from "../async/deadline.ts";
import { PlaybackStop, type Outside } from "../outside.ts";
import { briefText } from "./brief-value.ts";
import type { GetResource } from "./episode-resources.ts";
import { RolloutError, describeError, isOwnBug } from "../errors.ts";
import {
  toPlainJson,
  type PlainJson,
  type PyDict,
} from "../../packages/python-values/src/value.ts";
import { NotPlain, writePlainJson, writeShownJson } from "./plain-text.ts";
import { isRefusal } from "./refuse.ts";
import { placeOfThrow } from "../text/source-place.ts";
import type { CheckedArguments, ParameterCheck } from "./tool-parameters.ts";
import { findUnusable } from "./written-arguments.ts";

/** A tool's third argument: the context of the call. */
export interface ToolContext {
  /** The task's id. */
  readonly taskId: string;
  /** Aborts when the call times out or the run stops: pass it to everything that waits. */
  readonly signal: AbortSignal;
  /** Ends the episode after this call. */
  readonly stop: () => void;
  /**
   * Performs work that cannot be repeated: `await context.outside("weather", () => fetch(…))`. The result is
   * recorded, and a replay of the episode uses the recorded result.
   */
  readonly outside: Outside;
  /**
   * Returns the episode's resource under a key, such as a connection. The first call opens it, and it is disposed
   * of when the episode ends.
   */
  readonly resource: GetResource;
  /**
   * The arguments as the model wrote them: integers of any size, and `1.0` distinct from `1`. Use them to call a
   * program in another language.
   */
  readonly exactArguments: PyDict;
}

/** The result of a call. */
export interface ToolOutcome {
  /** The text that the model sees. */
  readonly text: string;
  /** True if the call was a mistake of the model and changed nothing. */
  readonly isError: boolean;
  /** True if the call ends the episode. */
  readonly ends: boolean;
}

/** A callable tool, made by `defineTool()`. */
export interface CallableTool<State> extends ParameterCheck {
  readonly name: string;
  readonly timeoutMs: number;
  readonly ends: boolean;
  readonly execute: (given: unknown, state: State, context: ToolContext) => unknown;
  /** True if the tool works on state outside of the episode that cannot be restored. */
  readonly isElsewhere?: boolean;
  /** True if the tool accepts integers of any size, from `exactArguments`. */
  readonly takesExact?: boolean;
}

/** The task and the index of a call. */
interface ToolCallPlace {
  readonly taskId: string;
  readonly environment: string;
  readonly signal: AbortSignal;
  readonly outside: Outside;
  readonly resource: GetResource;
}

/**
 * Calls a tool: validates the arguments, executes within the time limit, and writes the result as text.
 *
 * @throws RolloutError with party `environment` naming the tool: `environment/exception` if it throws,
 * `environment/timeout`, or `environment/bad-result` for a result that is neither text nor plain data.
 */
export async function callDefinedTool<State>(
  tool: CallableTool<State>,
  { given, state }: { readonly given: PyDict; readonly state: State },
  place: ToolCallPlace,
): Promise<ToolOutcome> {
  const unusable = findUnusable(given, tool);
  if (unusable !== undefined) return mistake(unusable, tool);
  using call = new TimedCall(tool, place, given);
  try {
    const plain = toPlainJson(given);
    let checked: CheckedArguments | Promise<CheckedArguments> = tool.check(plain);
    if (checked instanceof Promise) checked = await call.within(checked);
    if ("problems" in checked) return mistake(checked.problems.join("; "), tool);
    const result = tool.execute(checked.value, state, call);
    const value = isThenable(result) ? await call.within(result) : result;
    const text = textOf(value, plain, { name: tool.name, place });
    return { text, isError: false, ends: tool.ends || call.isStopped };
  } catch (error) {
    if (isRefusal(error)) return { ...mistake(error.message), ends: call.isStopped };
    throw failure(error, tool.name, place);
  }
}

/** Returns the outcome of a call to a tool that does not exist. */
export function noSuchTool(name: string, tools: ReadonlyMap<string, unknown>): ToolOutcome {
  const known = tools.size === 0 ? "there are none" : `there are ${[...tools.keys()].join(", ")}`;
  return { text: briefText(`Error: no tool ${name}, ${known}`), isError: true, ends: false };
}

/**
 * Returns the outcome of a call with arguments that do not fit, for a tool whose arguments a JSON Schema describes.
 * Another program performs the call then.
 */
export async function findMistake(
  tool: ParameterCheck & { readonly name: string; readonly takesExact?: boolean },
  given: PyDict,
): Promise<ToolOutcome | undefined> {
  const unusable = findUnusable(given, tool);
  if (unusable !== undefined) return mistake(unusable, tool);
  const checked = await tool.check(toPlainJson(given));
  return "problems" in checked ? mistake(checked.problems.join("; "), tool) : undefined;
}

/** Returns the outcome of a mistake of the model. */
export function refusedCall(why: string): ToolOutcome {
  return mistake(why);
}

/** The tool context. The deadline starts at the first wait or the first access to the signal. */
class TimedCall implements ToolContext {
  readonly taskId: string;
  isStopped = false;
  readonly #tool: Pick<CallableTool<never>, "name" | "timeoutMs">;
  readonly #place: ToolCallPlace;
  #deadline: Deadline | undefined;

  readonly exactArguments: PyDict;

  constructor(
    tool: Pick<CallableTool<never>, "name" | "timeoutMs">,
    place: ToolCallPlace,
    given: PyDict,
  ) {
    this.exactArguments = given;
    this.#tool = tool;
    this.#place = place;
    this.taskId = place.taskId;
    this.stop = () => {
      this.isStopped = true;
    };
  }

  readonly stop: () => void;

  get outside(): Outside {
    return this.#place.outside;
  }

  get resource(): GetResource {
    return this.#place.resource;
  }

  get signal(): AbortSignal {
    this.#deadline ??= startDeadline({
      ms: this.#tool.timeoutMs,
      parents: [this.#place.signal],
    });
    return this.#deadline.signal;
  }

  async within<Value>(work: PromiseLike<Value>): Promise<Value> {
    const { signal } = this;
    try {
      return await new Promise<Value>((resolve, reject) => {
        const onAbort = (): void => reject(signal.reason as Error);
        if (signal.aborted) onAbort();
        signal.addEventListener("abort", onAbort, { once: true });
        // A late result or a late failure ends here as well.
        work.then(resolve, reject);
      });
    } catch (error) {
      this.#place.signal.throwIfAborted();
      if (this.#deadline?.expired !== true) throw error;
      const { name, timeoutMs } = this.#tool;
      throw new RolloutError(
        "environment/timeout",
        `Cannot call tool ${name} of ${this.#place.environment} in task ${this.taskId}: no answer ` +
          `within ${timeoutMs} ms, expected one (a forgotten resolve?), or a longer timeoutMs of the tool`,
        { retryable: true },
      );
    }
  }

  [Symbol.dispose](): void {
    this.#deadline?.[Symbol.dispose]();
  }
}

function mistake(why: string, tool?: ParameterCheck & { readonly name: string }): ToolOutcome {
  const shape = tool === undefined ? "" : ` (${tool.name} takes ${describeShape(tool)})`;
  return { text: briefText(`Error: ${why}${shape}`), isError: true, ends: false };
}

/** The names of a tool's parameters, with optional ones marked. */
function describeShape({ jsonSchema }: ParameterCheck): string {
  // The schema of an MCP server may contain anything here.
  const { properties, required } = jsonSchema;
  const isObject = typeof properties === "object" && properties !== null;
  const names = isObject && !Array.isArray(properties) ? Object.keys(properties) : [];
  if (names.length === 0) return "no arguments";
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  return names.map((name) => (needed.has(name) ? name : `${name}?`)).join(", ");
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    "then" in value &&
    typeof value.then === "function"
  );
}

function textOf(
  value: unknown,
  given: PlainJson,
  { name, place }: { readonly name: string; readonly place: ToolCallPlace },
): string {
  if (typeof value === "string") return value;
  if (value === undefined) {
    throw badResult("it returned nothing (a forgotten return?)", name, place);
  }
  try {
    return writeResult(value, given);
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    throw badResult(error.message, name, place);
  }
}

/**
 * Writes a result as text. An object that looks like a picture is allowed if the policy itself wrote it in its
 * arguments.
 */
function writeResult(value: unknown, given: PlainJson): string {
  try {
    return writeShownJson(value);
  } catch (error) {
    if (!(error instanceof NotPlain) || canBeShown(given)) throw error;
    return writePlainJson(value);
  }
}

function canBeShown(value: PlainJson): boolean {
  try {
    writeShownJson(value);
    return true;
  } catch (error) {
    if (!(error instanceof NotPlain)) throw error;
    return false;
  }
}

function badResult(what: string, tool: string, { environment, taskId }: ToolCallPlace) {
  return new RolloutError(
    "environment/bad-result",
    `Cannot use the result of tool ${tool} of ${environment} in task ${taskId}: ${what}, ` +
      "expected a text or plain data (null for no result)",
  );
}

function failure(error: unknown, tool: string, place: ToolCallPlace): unknown {
  place.signal.throwIfAborted();
  if (error instanceof RolloutError || isOwnBug(error)) return error;
  if (error instanceof PlaybackStop) return error;
  const where = placeOfThrow(error);
  const hint = "refuse(…) reports a mistake to the model; any other error fails the episode";
  return new RolloutError(
    "environment/exception",
    `Tool ${tool} of ${place.environment} threw in task ${place.taskId}` +
      `${where === undefined ? "" : ` at ${where}`}: ${describeError(error)} (${hint})`,
    { cause: error },
  );
}

import { startDeadline, type Deadline } from "../async/deadline.ts";
import { PlaybackStop, type Outside } from "../outside.ts";
import { briefText } from "./brief-value.ts";
import type { GetResource } from "./episode-resources.ts";
import { RolloutError, describeError, isOwnBug } from "../errors.ts";
import { toPlainJson, type PlainJson, type PyDict } from "../python/value.ts";
import { NotPlain, writePlainJson, writeShownJson } from "./plain-text.ts";
import { isRefusal } from "./refuse.ts";
import { placeOfThrow } from "../text/source-place.ts";
import type { CheckedArguments, ParameterCheck } from "./tool-parameters.ts";
import { findUnusable } from "./written-arguments.ts";

/** What a tool knows of the call besides arguments and state. */
export interface ToolContext {
  /** The task's id. */
  readonly taskId: string;
  /** Aborts when the call's time is over or the run stops: pass it on to whatever waits. */
  readonly signal: AbortSignal;
  /** Ends the episode after this call. */
  readonly stop: () => void;
  /**
   * Calls what cannot be repeated: `await context.outside("weather", () => fetch(…))`. What it brings is
   * recorded, and taken from there when the episode is played again.
   */
  readonly outside: Outside;
  /**
   * What this episode holds outside of its state under a key, such as a connection: opened when it is first
   * asked for, and disposed of when the episode is over.
   */
  readonly resource: GetResource;
  /**
   * The arguments as the model wrote them, with integers of any size and `1.0` kept apart from `1`: to be passed
   * on to a program in another language.
   */
  readonly exactArguments: PyDict;
}

/** What a call came to. */
export interface ToolOutcome {
  /** What the model is shown. */
  readonly text: string;
  /** The call was a mistake of the model's; it changed nothing. */
  readonly isError: boolean;
  /** The episode is over with it. */
  readonly ends: boolean;
}

/** A tool as it is called: made by `defineTool()`. */
export interface CallableTool<State> extends ParameterCheck {
  readonly name: string;
  readonly timeoutMs: number;
  readonly ends: boolean;
  readonly execute: (given: unknown, state: State, context: ToolContext) => unknown;
  /** What it works on lies outside of the episode and cannot be brought to where it was. */
  readonly isElsewhere?: boolean;
  /** It takes integers of any size, from `exactArguments`. */
  readonly takesExact?: boolean;
}

/** Which call in which task is performed. */
interface ToolCallPlace {
  readonly taskId: string;
  readonly environment: string;
  readonly signal: AbortSignal;
  readonly outside: Outside;
  readonly resource: GetResource;
}

/**
 * Calls a tool: checks the arguments, executes within its time, and writes what it returns as text.
 *
 * @throws RolloutError with party `environment` naming the tool: `environment/exception` for what it
 *   throws, `environment/timeout`, and `environment/bad-result` for what is no text and no plain data.
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

/** What the context's members are; the deadline starts when somebody waits or asks for the signal. */
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
        // Also what comes or fails too late ends here.
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

/** The names of a tool's parameters, the optional ones marked. */
function describeShape({ jsonSchema }: ParameterCheck): string {
  // A server may have written something else there.
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

/** What the policy itself wrote in the form of a picture is none, and may be told back to it. */
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
    `Cannot use what tool ${tool} of ${environment} returned in task ${taskId}: ${what}, ` +
      "expected a text or plain data (null where there is nothing to say)",
  );
}

function failure(error: unknown, tool: string, place: ToolCallPlace): unknown {
  place.signal.throwIfAborted();
  if (error instanceof RolloutError || isOwnBug(error)) return error;
  if (error instanceof PlaybackStop) return error;
  const where = placeOfThrow(error);
  const hint =
    "refuse(…) tells the model of a mistake, anything else that is thrown fails the episode";
  return new RolloutError(
    "environment/exception",
    `Tool ${tool} of ${place.environment} threw in task ${place.taskId}` +
      `${where === undefined ? "" : ` at ${where}`}: ${describeError(error)} (${hint})`,
    { cause: error },
  );
}

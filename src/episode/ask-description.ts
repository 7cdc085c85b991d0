import type { Engine, EngineDescription } from "../engine/engine.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import { withDeadline } from "../async/deadline.ts";
import { attribute } from "./boundary.ts";
import { describe, requireFields, requireObject, requirePlain } from "./check/foreign-value.ts";
import { defaultLimits } from "./limits.ts";

/** How an engine is asked what it is. */
export interface AskDescriptionOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined;
  /** How long it may take, milliseconds. Default: as long as a turn, for some sample to find out. */
  readonly timeoutMs?: number;
  /** Default: the machine's. */
  readonly clock?: Pick<Clock, "after" | "now"> | undefined;
}

const optionalTexts = ["url", "model", "policyVersion", "weightsFile", "engineVersion"];

/** Members that have a meaning, whether they are an object's own or a getter of its class. */
const members: readonly string[] = [
  "kind",
  "logprobConvention",
  "isConventionAssumed",
  "contextLength",
  "warnings",
  ...optionalTexts,
];

const conventions: readonly unknown[] = ["tempered", "raw", "processed"];

/**
 * Asks an engine, which may be anyone's, what it is. A context length that is none is left out with a warning:
 * episodes would all be over before their first turn.
 *
 * @throws RolloutError with party `engine` where it does not answer, fails, or answers what is no description.
 * @throws UsageError as the engine does.
 * @throws the signal's reason where the signal is aborted.
 */
export async function askDescription(
  engine: Engine,
  {
    signal = new AbortController().signal,
    timeoutMs = defaultLimits.engineTimeoutMs,
    clock,
  }: AskDescriptionOptions = {},
): Promise<EngineDescription> {
  const { kind } = engine;
  const ask = async (ending: AbortSignal): Promise<EngineDescription> =>
    checkDescription(await engine.describe({ signal: ending }), kind);
  const onLate = (): never => {
    const message = `Cannot describe the engine ${kind}: no answer within ${timeoutMs} ms`;
    const expected = "expected one (a forgotten resolve in describe()?)";
    throw new RolloutError("engine/timeout", `${message}, ${expected}`, { retryable: true });
  };
  try {
    // An engine may heed no signal.
    return await withDeadline(ask, {
      ms: timeoutMs,
      signal,
      onLate,
      ...(clock !== undefined && { clock }),
    });
  } catch (error) {
    if (signal.aborted || error instanceof UsageError) throw error;
    throw attribute(error, { party: "engine", what: `describe the engine ${kind}` });
  }
}

/** A copy that is sound: it is recorded with the run, and whoever gave it may use its object again. */
function checkDescription(answer: unknown, kind: string): EngineDescription {
  const place = `describe() of the engine ${kind}`;
  const origin = { code: "engine/bad-reply", place } as const;
  const copy = copyOf(requireObject(answer, origin, "an EngineDescription"));
  requireFields(copy, ["kind"], { ...origin, is: isText, expected: "a text" });
  requireFields(copy, ["logprobConvention"], {
    ...origin,
    is: (field) => conventions.includes(field),
    expected: '"tempered", "raw" or "processed"',
  });
  requireFields(copy, optionalTexts, {
    ...origin,
    is: (field) => field === undefined || isText(field),
    expected: "a text or nothing",
  });
  requireFields(copy, ["warnings"], {
    ...origin,
    is: (field) => field === undefined || (Array.isArray(field) && field.every(isText)),
    expected: "a list of texts or nothing",
  });
  requireFields(copy, ["isConventionAssumed"], {
    ...origin,
    is: (field) => field === undefined || field === true,
    expected: "true or nothing",
  });
  requirePlain(copy, origin, "its ");
  const { contextLength, ...rest } = copy as unknown as EngineDescription;
  if (contextLength === undefined || isLength(contextLength)) {
    return copy as unknown as EngineDescription;
  }
  const unknown =
    `the engine ${kind} names the context length ${describe(contextLength)}, expected a whole number of at least ` +
    "1: it is taken for unknown; give it by max-context, so that episodes end before it is full";
  return { ...rest, warnings: [...(rest.warnings ?? []), unknown] };
}

/** What it says; `null` and `false` say nothing, as in plain JavaScript. */
function copyOf(answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const names = [...new Set([...Object.keys(answer), ...members])];
  const told = names.map((name) => [name, answer[name]] as const);
  return Object.fromEntries(told.filter(([name, value]) => !saysNothing(name, value)));
}

function saysNothing(name: string, value: unknown): boolean {
  if (value === undefined) return true;
  if (name === "isConventionAssumed" && value === false) return true;
  // A context length that is none is told with a warning.
  return value === null && name !== "contextLength" && members.includes(name);
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function isLength(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

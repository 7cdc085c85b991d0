import type { Engine, EngineDescription } from "../engine/engine.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import { withDeadline } from "../async/deadline.ts";
import { attribute } from "./boundary.ts";
import { describe, requireFields, requireObject, requirePlain } from "./check/foreign-value.ts";
import { defaultLimits } from "./limits.ts";

/** Options of `askDescription()`. */
export interface AskDescriptionOptions {
  /** Aborts the call. */
  readonly signal?: AbortSignal | undefined;
  /** Time limit in milliseconds. Default: that of a turn, because some engines sample to describe themselves. */
  readonly timeoutMs?: number;
  /** The clock of the time limit. Default: the system clock. */
  readonly clock?: Pick<Clock, "after" | "now"> | undefined;
}

const optionalTexts = ["url", "model", "policyVersion", "weightsFile", "engineVersion"];

/** The known members. Each may also be a getter of a class. */
const members: readonly string[] = [
  "kind",
  "logprobConvention",
  "isConventionAssumed",
  "contextLength",
  "columns",
  "warnings",
  ...optionalTexts,
];

const conventions: readonly unknown[] = ["tempered", "raw", "processed"];

/**
 * Calls an engine's `describe()` and checks the result. An invalid context length is left out with a warning, because
 * such a limit would end all episodes before their first turn.
 *
 * @throws RolloutError with party `engine` if the engine times out, fails or returns an invalid description.
 * @throws UsageError as the engine does.
 * @throws the signal's reason if the signal aborts.
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
    checkDescription(await engine.describe({ signal: ending }), engine);
  const onLate = (): never => {
    const message = `Cannot describe the engine ${kind}: no answer within ${timeoutMs} ms`;
    const expected = "expected one (a forgotten resolve in describe()?)";
    throw new RolloutError("engine/timeout", `${message}, ${expected}`, { retryable: true });
  };
  try {
    // A time limit of its own, because an engine may ignore the signal.
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

/** Returns a checked copy of the description. The run records the copy, because the engine may reuse its own object. */
function checkDescription(
  answer: unknown,
  { kind, complete }: Pick<Engine, "kind" | "complete">,
): EngineDescription {
  const place = `describe() of the engine ${kind}`;
  const origin = { code: "engine/bad-reply", place } as const;
  const copy = copyOf(requireObject(answer, origin, "an EngineDescription"));
  requireFields(copy, ["kind"], { ...origin, is: isText, expected: "a text" });
  requireFields(copy, ["logprobConvention"], {
    ...origin,
    is: (field) => (complete === undefined ? conventions.includes(field) : field === undefined),
    expected:
      complete === undefined
        ? '"tempered", "raw" or "processed"'
        : "nothing, because messages have no logprobs",
  });
  requireFields(copy, optionalTexts, {
    ...origin,
    is: (field) => field === undefined || isText(field),
    expected: "a text or nothing",
  });
  requireFields(copy, ["warnings", "columns"], {
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

/** Returns the members that have a value. `null` and `false` count as absent, as in plain JavaScript. */
function copyOf(answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const names = [...new Set([...Object.keys(answer), ...members])];
  const given = names.map((name) => [name, answer[name]] as const);
  return Object.fromEntries(given.filter(([name, value]) => !isAbsent(name, value)));
}

function isAbsent(name: string, value: unknown): boolean {
  if (value === undefined) return true;
  if (name === "isConventionAssumed" && value === false) return true;
  // `contextLength: null` is reported with a warning.
  return value === null && name !== "contextLength" && members.includes(name);
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function isLength(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

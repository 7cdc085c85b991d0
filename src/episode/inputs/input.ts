import { hash } from "node:crypto";
import type { Generation } from "../../engine/engine.ts";
import {
  RolloutError,
  describeError,
  type DiscardedSampling,
  type FailureCode,
} from "../../errors.ts";
import { isWhollyJson } from "../../json/is-wholly-json.ts";
import { plainCopy } from "../../values/plain-copy.ts";
import { asRecorded } from "../../outside.ts";
import { isSoundFailure } from "../check/is-sound-failure.ts";

/** An error as it is recorded. JSON-able. */
export interface RecordedError {
  readonly message: string;
  /** The code of a `RolloutError`. Absent for other errors. */
  readonly code?: FailureCode;
  /** The name of another error, such as `TimeoutError`. Absent if it is `Error`. */
  readonly name?: string;
  /** The code of another error, such as `ECONNRESET`. Absent if it has none. */
  readonly errorCode?: string | number;
  /** The cause of another error, such as the refused connection of a `fetch`. Absent if the cause is not an error. */
  readonly cause?: RecordedError;
  /**
   * The cause of another error as JSON, such as a text or the reply of a service. Absent if the cause is an error, or
   * not JSON-able.
   */
  readonly causeValue?: unknown;
  readonly retryable?: true;
  readonly discarded?: readonly DiscardedSampling[];
}

/** The result of a call, or its error. JSON-able if the value is. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: RecordedError };

/**
 * One input that an episode cannot compute by itself. From the assignment, the setup and its inputs in order, an
 * episode can be played again to the byte.
 */
export type Input =
  /** The reply of the engine to a turn. */
  | {
      readonly type: "generation";
      /** Hash of the prompt ids (`hashIds()`). */
      readonly promptHash: string;
      /** Number of time readings before this input, in the complete episode. */
      readonly readings: number;
      readonly outcome: Outcome<Generation>;
      /**
       * Time of the reply, in milliseconds since the epoch. It does not count as a reading. An episode that continues
       * after this turn starts its time here. Absent for failures.
       */
      readonly endedAtMs?: number;
      /** Present if the episode's time was over when the reply came. */
      readonly isLate?: true;
      /** Present if an interruption cut the sampling short. The turn continues after these ids. */
      readonly isPartial?: true;
    }
  /** The result of a call through `outside`. */
  | {
      readonly type: "outside";
      /** 0-based index among the episode's calls through `outside`, in the order in which they start. */
      readonly index: number;
      readonly what: string;
      readonly outcome: Outcome<unknown>;
      /** Number of calls that had started when the result was handed over. Absent if this call was the last of them. */
      readonly begun?: number;
      /**
       * Present if the world cancelled the user request that the call served. The error then comes from the
       * cancellation, and is not the user's failure.
       */
      readonly isGivenUp?: true;
    }
  /** The end of a call to the user or the world. */
  | {
      readonly type: "answer";
      readonly what: string;
      /** The result: a hash if the call is repeatable, else the value. */
      readonly outcome: Outcome<unknown> | { readonly hash: string };
      /**
       * Number of calls through `outside` that had started in the complete episode. Absent if all of them had ended.
       */
      readonly begun?: number;
    }
  /** The end of the episode's time. */
  | { readonly type: "late" };

/** Inputs in order, and the time readings. */
export interface Inputs {
  readonly inputs: readonly Input[];
  /** The time readings in milliseconds since the epoch, in the order in which they were read. */
  readonly times: readonly number[];
  /**
   * For the first part of a recording: the hash of the next prompt's ids (see `hashIds()`). Absent if the hash is not
   * known.
   */
  readonly nextPromptHash?: string;
}

/** Returns an error as it is recorded. A failure that cannot be written becomes a plain error with its message. */
export function toRecordedError(error: unknown): RecordedError {
  if (!isSoundFailure(error)) return { message: messageOf(error), ...marksOf(error) };
  const { code, message, retryable, discarded } = error;
  return {
    code,
    message,
    ...(retryable && { retryable }),
    ...(discarded.length !== 0 && { discarded }),
  };
}

/** Reads the message safely: a foreign error may have any members. */
function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return describeError(thrown);
  }
}

/** Maximum length of a chain of causes. An error may be its own cause. */
const maxCauses = 4;

/** Returns the members by which a program distinguishes errors: name, code and cause. */
function marksOf(
  thrown: unknown,
  depth = 0,
): Pick<RecordedError, "name" | "errorCode" | "cause" | "causeValue"> {
  try {
    if (!(thrown instanceof Error)) return {};
    const { name, code, cause } = thrown as Error & { readonly code?: unknown };
    return {
      ...(typeof name === "string" && name !== "Error" && { name }),
      ...((typeof code === "string" || Number.isFinite(code)) && {
        errorCode: code as string | number,
      }),
      ...(cause instanceof Error &&
        depth < maxCauses && {
          cause: { message: messageOf(cause), ...marksOf(cause, depth + 1) },
        }),
      // A copy, because the thrower may change its object.
      ...(isWhollyJson(cause) && { causeValue: plainCopy(cause) }),
    };
  } catch {
    return {};
  }
}

/** Creates an error from its record, with the same name, code and message. */
export function fromRecordedError(recorded: RecordedError): Error {
  const { code, message, name, errorCode, retryable = false, discarded = [] } = recorded;
  if (code !== undefined) return new RolloutError(code, message, { retryable, discarded });
  const { cause, causeValue } = recorded;
  const options =
    causeValue === undefined
      ? cause && { cause: fromRecordedError(cause) }
      : { cause: plainCopy(causeValue) };
  const error = Object.assign(new Error(message, options), {
    ...(name !== undefined && { name }),
    ...(errorCode !== undefined && { code: errorCode }),
  });
  return asRecorded(error);
}

/** Returns the time at which the inputs end, in milliseconds since the epoch. `undefined` without a reading. */
export function endOf({ inputs, times }: Inputs): number | undefined {
  const last = inputs.findLast((input) => input.type === "generation");
  const known = [times.at(-1), last?.endedAtMs].filter((atMs) => atMs !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** The start of the recorded names of turns that an engine returned as messages. */
const chatTurnMark = "turn ";

/** Returns the recorded name of a turn that an engine returns as a message: it has the hash of the conversation. */
export function chatTurnName(promptHash: string): string {
  return chatTurnMark + promptHash;
}

/** True for a turn that an engine returned as a message. */
export function isChatTurn({ type, what }: { readonly type?: unknown; readonly what?: unknown }) {
  return type === "answer" && typeof what === "string" && what.startsWith(chatTurnMark);
}

/** True if a turn of the policy ended with the input. */
function isTurnEnd(input: Input): boolean {
  return input.type === "generation" ? input.isPartial !== true : isChatTurn(input);
}

/** Counts the complete turns of the inputs. */
export function turnsIn({ inputs }: Inputs): number {
  return inputs.filter(isTurnEnd).length;
}

/**
 * Returns the inputs of an episode's first turns, up to the request for the given turn.
 *
 * @returns `undefined` if the recording ends before that turn.
 */
export function inputsBefore({ inputs, times }: Inputs, turnIndex: number): Inputs | undefined {
  let turnCount = 0;
  for (const [index, input] of inputs.entries()) {
    if (input.type !== "generation") continue;
    if (turnCount === turnIndex) {
      const { promptHash, readings } = input;
      const before = { inputs: inputs.slice(0, index), times: times.slice(0, readings) };
      return { ...before, nextPromptHash: promptHash };
    }
    if (input.isPartial !== true) turnCount += 1;
  }
  return undefined;
}

/** Returns the first 16 hexadecimal digits of the SHA-256 of the value's JSON. */
export function hashOf(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  return hash("sha256", text, "hex").slice(0, 16);
}

/** Returns the value of an outcome, or throws its error. */
export function openOutcome<Value>(outcome: Outcome<Value>): Value {
  if ("error" in outcome) throw fromRecordedError(outcome.error);
  return outcome.value;
}

/** Returns a name of the input for messages. */
export function describeInput(input: Input): string {
  switch (input.type) {
    case "generation":
      return "a policy call";
    case "late":
      return "its deadline";
    default:
      return input.what;
  }
}

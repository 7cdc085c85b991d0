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

/** What was thrown in the place of an answer. JSON-able. */
export interface RecordedError {
  readonly message: string;
  /** Of a `RolloutError`; absent for anything else that was thrown. */
  readonly code?: FailureCode;
  /** Of any other error, such as `TimeoutError`; absent where it is `Error`. */
  readonly name?: string;
  /** The code of any other error, such as `ECONNRESET`; absent where it has none. */
  readonly errorCode?: string | number;
  /** What led to any other error, such as the refused connection of a `fetch`; absent where that is no error. */
  readonly cause?: RecordedError;
  /**
   * What led to any other error where that is no error, as JSON has it: a text, or the reply of a service. Absent
   * if JSON cannot represent it.
   */
  readonly causeValue?: unknown;
  readonly retryable?: true;
  readonly discarded?: readonly DiscardedSampling[];
}

/** What came back of a call, or what was thrown. JSON-able where the value is. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: RecordedError };

/**
 * One thing that an episode could not have worked out by itself. With the assignment, the setup and its
 * inputs in order an episode can be played again, to the byte.
 */
export type Input =
  /** What the engine answered a policy call. */
  | {
      readonly type: "generation";
      /** Hash of the ids that the engine was sent (`hashIds()`). */
      readonly promptHash: string;
      /** Readings of the clock that were taken before it, over the whole episode. */
      readonly readings: number;
      readonly outcome: Outcome<Generation>;
      /**
       * When it was answered, milliseconds since the epoch, which is no reading of the clock: whoever goes on behind
       * it counts from there. Absent for failures.
       */
      readonly endedAtMs?: number;
      /** The episode's time was over when the answer came. */
      readonly isLate?: true;
      /** Sampling was interrupted from outside and goes on behind these ids. */
      readonly isPartial?: true;
    }
  /** What `Outside` brought back. */
  | {
      readonly type: "outside";
      /** 0-based over the calls of the episode, in the order in which they began. */
      readonly index: number;
      readonly what: string;
      readonly outcome: Outcome<unknown>;
      /**
       * How many calls of the episode had begun when it was handed over; absent where it was the last of them.
       */
      readonly begun?: number;
      /**
       * The world gave up the wait for the line that this was called for, by a signal of its own: what was thrown
       * is the end of that wait, and no failure of the user's.
       */
      readonly isGivenUp?: true;
    }
  /** How a call of the user's or the environment's ended. */
  | {
      readonly type: "answer";
      readonly what: string;
      /** What came back, by its hash where it can be worked out again and by its value where not. */
      readonly outcome: Outcome<unknown> | { readonly hash: string };
      /**
       * How many calls of `Outside` had begun by then over the episode; absent where all of them had ended.
       */
      readonly begun?: number;
    }
  /** The episode's time was found to be over. */
  | { readonly type: "late" };

/** Inputs in order, with the readings of the clock that were taken meanwhile. */
export interface Inputs {
  readonly inputs: readonly Input[];
  /** Milliseconds since the epoch, in the order in which they were read. */
  readonly times: readonly number[];
  /**
   * Of a beginning: the hash of the ids that the engine was sent next (see `hashIds()`). Absent where that is
   * not known.
   */
  readonly nextPromptHash?: string;
}

/** What is recorded of something that was thrown: of a failure that cannot be written, what it says. */
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

/** Whoever threw it may have put anything there. */
function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return describeError(thrown);
  }
}

/** Errors may be their own causes. */
const maxCauses = 4;

/** By what others than people tell errors apart. */
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
      // Whoever threw it may write into it.
      ...(isWhollyJson(cause) && { causeValue: plainCopy(cause) }),
    };
  } catch {
    return {};
  }
}

/** What was thrown, once more: by its name, its code and what it says. */
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

/** How far the episode's time has gone with the inputs, milliseconds since the epoch; nothing where there are none. */
export function endOf({ inputs, times }: Inputs): number | undefined {
  const last = inputs.findLast((input) => input.type === "generation");
  const known = [times.at(-1), last?.endedAtMs].filter((atMs) => atMs !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** How many turns the inputs hold to their end. */
export function turnsIn({ inputs }: Inputs): number {
  return inputs.filter((input) => input.type === "generation" && input.isPartial !== true).length;
}

/**
 * The inputs of an episode's first turns, up to where the policy is asked for the given one.
 *
 * @returns nothing where the recording does not reach so far.
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

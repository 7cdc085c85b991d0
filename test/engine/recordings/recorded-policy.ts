import { createDeferred } from "../../../src/testing/deferred.ts";
import type { PolicyToken, ServerPolicy } from "../../../src/testing/index.ts";

/** The samples and scores of a real server, for a test server to repeat. */
export interface RecordedTurn {
  /** The samples for each prompt of the request; `logprobs[i]` belongs to `ids[i]`. */
  readonly outputs: readonly {
    readonly ids: readonly number[];
    readonly logprobs: readonly number[];
    /** The text that the last id completes. */
    readonly matched?: string;
  }[];
  /** One for each id of the prompt, if they were requested. */
  readonly inputLogprobs?: readonly number[];
  /** True if the sequence was aborted after these ids: no further id comes. */
  readonly isAborted?: boolean;
}

/** A policy that samples recorded ids. */
export interface RecordedPolicy extends ServerPolicy {
  /** The outputs of the next requests. */
  play(turn: RecordedTurn): void;
  /** Settles when a turn that was aborted has brought its last id. */
  readonly reachedAbort: Promise<void>;
}

/** Makes a policy that samples recorded ids, one output for each sequence in turn. */
export function recordedPolicy(): RecordedPolicy {
  let current: RecordedTurn = { outputs: [] };
  let begunCount = 0;
  let reached = createDeferred();
  return {
    name: "recorded",
    get reachedAbort() {
      return reached.promise;
    },
    play(turn) {
      current = turn;
      begunCount = 0;
      reached = createDeferred();
    },
    begin: () => {
      const turn = current;
      const output = turn.outputs[begunCount++ % Math.max(turn.outputs.length, 1)];
      if (output === undefined) throw new Error("Cannot sample: the real server refused this");
      const { ids, logprobs, matched } = output;
      const tokens = ids.map((id, index): PolicyToken => {
        const isLast = index === ids.length - 1;
        const logprob = logprobs[index] ?? Number.NaN;
        return { id, logprob, ...(isLast && matched !== undefined && { matched }) };
      });
      return turn.isAborted === true ? thenWait(tokens, reached.resolve) : tokens;
    },
    score: ({ inputIds }) => current.inputLogprobs ?? inputIds.map(() => -1),
  };
}

async function* thenWait(
  tokens: readonly PolicyToken[],
  onReached: () => void,
): AsyncGenerator<PolicyToken> {
  yield* tokens;
  onReached();
  await new Promise<never>(() => {
    // Only an abort ends it.
  });
}

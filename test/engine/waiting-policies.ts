import type { PolicyToken, ServerPolicy } from "../../src/testing/index.ts";
import { createDeferred } from "../../src/testing/index.ts";

/** Samples the tokens, then waits for another until it is aborted. The i-th id alone has -1 - i. */
export function stuckPolicy(...tokens: readonly (number | PolicyToken)[]): ServerPolicy {
  return {
    name: "stuck",
    async *begin({ signal }): AsyncGenerator<PolicyToken> {
      for (const [index, token] of tokens.entries()) {
        yield typeof token === "number" ? { id: token, logprob: -1 - index } : token;
      }
      await untilAborted(signal);
    },
  };
}

/** A policy that waits at a gate. */
export interface GatedPolicy {
  readonly policy: ServerPolicy;
  /** Resolves when the given number of requests has reached the gate. */
  readonly atGate: Promise<void>;
  /** Lets all requests pass. */
  readonly open: () => void;
}

/**
 * Samples the ids, each with its negative as logprob, and waits before 12 until the gate opens or the
 * request is aborted. With `resumes`, ids that a prompt of [1, 2, 3] was followed by are not sampled
 * again. `requestCount` are waited for at the gate; default 1.
 */
export function gatedPolicy(
  ids: readonly number[],
  { resumes = false, requestCount = 1 }: { resumes?: boolean; requestCount?: number } = {},
): GatedPolicy {
  const atGate = createDeferred();
  const gate = createDeferred();
  let atGateCount = 0;
  const policy: ServerPolicy = {
    name: "gated",
    async *begin({ inputIds, signal }): AsyncGenerator<PolicyToken> {
      for (const id of resumes ? ids.slice(inputIds.length - 3) : ids) {
        if (id === 12) {
          const aborted = untilAborted(signal);
          if (++atGateCount === requestCount) atGate.resolve();
          await Promise.race([gate.promise, aborted]);
          if (signal.aborted) return;
        }
        yield { id, logprob: -id };
      }
    },
  };
  return { policy, atGate: atGate.promise, open: gate.resolve };
}

function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = createDeferred();
  signal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}

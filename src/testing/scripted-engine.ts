import { setMaxListeners } from "node:events";
import { checkRequest } from "../engine/check-request.ts";
import { checkGeneration } from "../engine/check-sampled.ts";
import type {
  Engine,
  EngineDescription,
  Finish,
  GenerateOptions,
  GenerateRequest,
  Generation,
} from "../engine/engine.ts";
import type { TokenIds } from "../engine/token-id.ts";
import { ownBug, RolloutError } from "../errors.ts";

/** The scripted outcome of one call. */
export type ScriptedGeneration =
  | {
      /** The ids to return. */
      readonly outputIds: readonly number[];
      /** One logprob for each id. Default: -(i + 1) / 16 for the i-th, 0-based. */
      readonly logprobs?: readonly number[];
      /**
       * The reason of the end. Default: `stop` if the last id is one of the request's stop ids,
       * otherwise `length`.
       */
      readonly finish?: Finish;
      /** The policy version of the ids. Default `""`. */
      readonly policyVersion?: string;
      /** Further members of the generation that replace the default ones. */
      readonly generation?: Partial<Generation>;
      /** The prompt that the call must have. */
      readonly promptIds?: readonly number[];
      /** Checks the request. Returns the reason if the script did not expect it. */
      readonly check?: (request: GenerateRequest) => string | undefined;
    }
  /** The call fails with this error. */
  | { readonly error: RolloutError }
  /** The call ends only when its signal aborts or the engine is closed. */
  | { readonly hangs: true };

/** An engine that plays a script. */
export interface ScriptedEngine extends Engine {
  readonly kind: "scripted";
  /** Every call, in order. */
  readonly requests: readonly GenerateRequest[];
  /**
   * Checks that the complete script was played and that no unexpected call was made.
   * @throws InvariantError that names the remaining turns, or the unexpected calls.
   */
  assertDrained(): void;
}

/** Settings of `createScriptedEngine()`. */
export interface ScriptedEngineOptions {
  readonly description?: Partial<EngineDescription>;
}

/** The generations of a scripted engine: one list for all sessions, or one list per session id. */
export type GenerationScript =
  | readonly ScriptedGeneration[]
  | Readonly<Record<string, readonly ScriptedGeneration[]>>;

/**
 * Creates an engine in this process that plays a script, call by call. The script is one list for all sessions, or one
 * list per session id if several episodes run at the same time. Listeners receive one id at a time before a call
 * returns. An unexpected call throws an `InvariantError`, and `assertDrained()` reports calls that were never made.
 */
export function createScriptedEngine(
  script: GenerationScript,
  { description = {} }: ScriptedEngineOptions = {},
): ScriptedEngine {
  const shared = isList(script) ? [...script] : undefined;
  const bySession = new Map<string, ScriptedGeneration[]>(
    isList(script) ? [] : Object.entries(script).map(([id, turns]) => [id, [...turns]]),
  );
  const requests: GenerateRequest[] = [];
  const complaints: string[] = [];
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);

  function complain(message: string): never {
    complaints.push(message);
    throw ownBug(message);
  }

  async function generate(
    request: GenerateRequest,
    { signal, onTokens }: GenerateOptions = {},
  ): Promise<Generation> {
    if (closing.signal.aborted) complain("The engine takes no calls after close()");
    signal?.throwIfAborted();
    checkRequest(request);
    // A copy, because the caller's array may grow.
    requests.push({ ...request, promptIds: [...request.promptIds] });
    const turn = (shared ?? bySession.get(request.sessionId))?.shift();
    if (turn === undefined) {
      return complain(
        `Cannot sample request ${request.requestId} of session ${request.sessionId}: ` +
          "the script has no turn left for it",
      );
    }
    if ("error" in turn) throw turn.error;
    if ("hangs" in turn) return untilAborted(signal, closing.signal);
    const refusal = refusalOf(turn, request);
    if (refusal !== undefined) {
      return complain(`Cannot sample request ${request.requestId}: ${refusal}`);
    }
    const generation = checkGeneration(toGeneration(turn, request), request);
    for (const [index, id] of generation.outputIds.entries()) {
      onTokens?.({ tokenIds: [id], logprobs: [generation.logprobs[index]!] });
    }
    return generation;
  }

  return {
    kind: "scripted",
    requests,
    generate,
    describe: async ({ signal } = {}) => {
      signal?.throwIfAborted();
      return { kind: "scripted", logprobConvention: "tempered", ...description };
    },
    close: async () => {
      closing.abort(new RolloutError("engine/unreachable", "The engine was closed"));
    },
    assertDrained() {
      const left = [["all sessions", shared ?? []] as const, ...bySession].flatMap(
        ([session, turns]) =>
          turns.length === 0 ? [] : [`${turns.length} turns of ${session} were never asked for`],
      );
      const all = [...complaints, ...left];
      if (all.length > 0) throw ownBug(`The script is not drained: ${all.join("; ")}`);
    },
  };
}

function isList(script: GenerationScript): script is readonly ScriptedGeneration[] {
  return Array.isArray(script);
}

type ScriptedSampling = Extract<ScriptedGeneration, { outputIds: readonly number[] }>;

function refusalOf(turn: ScriptedSampling, request: GenerateRequest): string | undefined {
  const { promptIds, check, outputIds } = turn;
  if (promptIds !== undefined && !isSameIds(promptIds, request.promptIds)) {
    return `its prompt is [${request.promptIds.join(", ")}], expected [${promptIds.join(", ")}]`;
  }
  if (outputIds.length > request.maxNewTokens) {
    return `the script samples ${outputIds.length} ids, expected at most ${request.maxNewTokens}`;
  }
  return check?.(request);
}

function isSameIds(left: readonly number[], right: TokenIds): boolean {
  return left.length === right.length && left.every((id, index) => id === right[index]);
}

function toGeneration(turn: ScriptedSampling, request: GenerateRequest): Generation {
  const { outputIds, policyVersion = "", generation = {} } = turn;
  const last = outputIds.at(-1);
  const stops = last !== undefined && request.stopTokenIds.includes(last);
  const finish: Finish =
    turn.finish ?? (stops ? { type: "stop", matched: last } : { type: "length" });
  return {
    outputIds,
    logprobs: turn.logprobs ?? outputIds.map((_, index) => -(index + 1) / 16),
    finish,
    pieces: [
      {
        requestId: request.requestId,
        tokenCount: outputIds.length,
        policyVersion,
        finish: finish.type,
      },
    ],
    promptTokenCount: request.promptIds.length,
    discarded: [],
    ...generation,
  };
}

/** Never resolves. Rejects when one of the signals aborts. */
function untilAborted(...signals: readonly (AbortSignal | undefined)[]): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const signal of signals) {
      signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    }
  });
}

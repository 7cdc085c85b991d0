import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../async/clock.ts";
import { createDeferred } from "../../deferred.ts";
import type {
  PolicyScoreRequest,
  PolicyToken,
  PolicyTokens,
  ServerPolicy,
} from "../../policies/server-policy.ts";
import type { SequenceRequest } from "./sequence-request.ts";

/** The reason why a sequence ended, in the engine's own form. */
export type FinishReason =
  | { readonly type: "stop"; readonly matched: number | string }
  | { readonly type: "length"; readonly length: number }
  | {
      readonly type: "abort";
      readonly message: string;
      readonly status_code?: number | null;
      readonly err_type?: string | null;
    };

/** Tokens that one version of the weights sampled, counted from the first output token. */
interface VersionSpan {
  readonly version: string;
  readonly start: number;
  end: number;
}

/** A sequence being served. */
export interface LiveSequence<Request extends SequenceRequest = SequenceRequest> {
  readonly request: Request;
  readonly routingKey: string | undefined;
  readonly outputIds: number[];
  readonly outputLogprobs: number[];
  /** One logprob per input id, if they were requested and the sequence has run. */
  inputLogprobs: readonly number[] | undefined;
  readonly versionSpans: VersionSpan[];
  /**
   * `held`: came while the engine was paused. `waiting`: in the scheduler's queue. `running`: being
   * sampled. `finished`: `finish` says how.
   */
  state: "held" | "waiting" | "running" | "finished";
  finish: FinishReason | undefined;
  /**
   * True if the sequence has run. The engine reports no prompt for a sequence that was aborted in
   * the queue.
   */
  hasRun: boolean;
  retractionCount: number;
  cachedTokenCount: number;
  /** Settles when the sequence is finished. */
  readonly done: Promise<void>;
  /** Called after each token and at the end. */
  onProgress: (() => void) | undefined;
}

/** An end that is forced on a sequence, for tests. */
export interface ForcedEnd {
  /** It comes when so many tokens are sampled, unless the sequence ends before. */
  readonly afterTokens: number;
  /** It comes before the sequence runs at all. */
  readonly inQueue?: boolean;
  readonly finish: FinishReason;
  /** Takes the place of the last token's id; its logprob is then NaN. */
  readonly replaceLastBy?: number;
}

/** The parts that arrive with a sequence. */
interface Admission {
  readonly routingKey: string | undefined;
  /** Only reported. */
  readonly cachedTokenCount: number;
  readonly forcedEnd?: ForcedEnd | undefined;
}

/**
 * The way in which the engine pauses. New requests always wait. `abort`: running requests are
 * aborted. `retract`: they return to the queue. `in_place`: they freeze. `wait`: they run to their
 * end.
 */
export type PauseMode = "abort" | "retract" | "in_place" | "wait";

/** Settings of a scheduler. */
interface SchedulerOptions {
  readonly policy: ServerPolicy;
  /** Sequences sampled at a time; further ones wait. */
  readonly maxRunning: number;
  /** Time for one token, in milliseconds. */
  readonly tokenLatencyMs: number;
  /** Tokens sampled before the event loop gets a turn. */
  readonly tokensPerTick: number;
  /** True if a stop id in the last place of the budget counts as a stop. */
  readonly stopsBeforeBudget: boolean;
  readonly sleep: Clock["sleep"];
  /** The version of the weights at this moment. */
  readonly weightVersion: () => string;
  /** Called with a policy's complaints. */
  readonly onComplaint: (message: string) => void;
  /** Called when a sequence is admitted, starts, returns to the queue, or ends. */
  readonly onChange: () => void;
}

/** The scheduler's state of a sequence. */
interface Entry<Request extends SequenceRequest = SequenceRequest> extends LiveSequence<Request> {
  readonly settleDone: () => void;
  readonly aborter: AbortController;
  readonly forcedEnd: ForcedEnd | undefined;
  /** The reason for which the sequence ends after its next step. */
  pendingAbort: FinishReason | undefined;
  wantsRetraction: boolean;
  iterator: Iterator<PolicyToken> | AsyncIterator<PolicyToken> | undefined;
}

/**
 * Serves sequences as the engine's tokenizer manager and scheduler do: holds what comes while
 * paused, queues what exceeds its capacity, samples the rest token by token, and aborts on demand.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py (pause, abort) and
 * scheduler.py (queues, retraction).
 */
export class RequestScheduler<Request extends SequenceRequest = SequenceRequest> {
  readonly #options: SchedulerOptions;
  /** In order of arrival, by name. Holds everything that is not finished. */
  readonly #live = new Map<string, Entry<Request>>();
  readonly #waiting: Entry<Request>[] = [];
  #runningCount = 0;
  #pause: PauseMode | undefined;
  #continued = createDeferred();

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  get pauseMode(): PauseMode | undefined {
    return this.#pause;
  }

  get runningCount(): number {
    return this.#runningCount;
  }

  /** Tokens of all sequences in work. */
  get tokenCount(): number {
    let count = 0;
    for (const { state, request, outputIds } of this.#live.values()) {
      if (state === "running") count += request.inputIds.length + outputIds.length;
    }
    return count;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  get heldCount(): number {
    return [...this.#live.values()].filter(({ state }) => state === "held").length;
  }

  isLive(rid: string): boolean {
    return this.#live.has(rid);
  }

  /** Takes a sequence; its `done` settles when it ends. */
  admit(
    request: Request,
    { routingKey, cachedTokenCount, forcedEnd }: Admission,
  ): LiveSequence<Request> {
    const { promise: done, resolve: settleDone } = createDeferred();
    const entry: Entry<Request> = {
      request,
      routingKey,
      outputIds: [],
      outputLogprobs: [],
      inputLogprobs: undefined,
      versionSpans: [],
      state: this.#pause === undefined ? "waiting" : "held",
      finish: undefined,
      hasRun: false,
      retractionCount: 0,
      cachedTokenCount,
      done,
      onProgress: undefined,
      settleDone,
      aborter: new AbortController(),
      forcedEnd,
      pendingAbort: undefined,
      wantsRetraction: false,
      iterator: undefined,
    };
    this.#live.set(request.rid, entry);
    if (entry.state === "waiting") {
      this.#waiting.push(entry);
      this.#startWaiting();
    }
    this.#options.onChange();
    return entry;
  }

  /**
   * Aborts every sequence with a name that begins with `rid`, if one of exactly that name is
   * running. Returns true if there was one.
   */
  abort(rid: string): boolean {
    const exact = this.#live.get(rid);
    if (exact === undefined || exact.state === "held") return false;
    for (const [name, entry] of this.#live) if (name.startsWith(rid)) this.#abortEntry(entry);
    return true;
  }

  abortAll(): void {
    for (const entry of this.#live.values()) this.#abortEntry(entry);
  }

  /** Ends a sequence, held ones included. Says whether there was one. */
  drop(rid: string): boolean {
    const entry = this.#live.get(rid);
    if (entry === undefined) return false;
    if (entry.state === "held") this.#finish(entry, { type: "abort", message: "Disconnected" });
    else this.#abortEntry(entry);
    return true;
  }

  /** Ends all sequences, held ones included. Says how many there were. */
  dropAll(): number {
    const names = [...this.#live.keys()];
    for (const name of names) this.drop(name);
    return names.length;
  }

  /** Pauses. In the modes `abort` and `wait`, resolves when no request is running. */
  async pause(mode: PauseMode): Promise<void> {
    this.#pause = mode;
    if (mode === "retract") {
      for (const entry of this.#live.values()) {
        if (entry.state === "running") entry.wantsRetraction = true;
      }
    }
    if (mode !== "abort" && mode !== "wait") return;
    const entries = [...this.#live.values()];
    const inFlight = entries.filter(
      ({ state }) => state === "running" || (mode === "abort" && state === "waiting"),
    );
    if (mode === "abort") this.abortAll();
    await Promise.all(inFlight.map(({ done }) => done));
  }

  continue(): void {
    this.#pause = undefined;
    this.#continued.resolve();
    this.#continued = createDeferred();
    for (const entry of this.#live.values()) {
      if (entry.state !== "held") continue;
      entry.state = "waiting";
      this.#waiting.push(entry);
    }
    this.#startWaiting();
    this.#options.onChange();
  }

  #abortEntry(entry: Entry<Request>): void {
    if (entry.state === "waiting") {
      this.#waiting.splice(this.#waiting.indexOf(entry), 1);
      this.#finish(entry, { type: "abort", message: "Abort in waiting queue" });
    } else if (entry.state === "running") {
      entry.pendingAbort ??= { type: "abort", message: "Aborted", status_code: null };
      entry.aborter.abort();
    }
  }

  #startWaiting(): void {
    if (this.#pause !== undefined) return;
    while (this.#runningCount < this.#options.maxRunning) {
      const entry = this.#waiting.shift();
      if (entry === undefined) return;
      if (entry.forcedEnd?.inQueue === true) {
        this.#finish(entry, entry.forcedEnd.finish);
        continue;
      }
      this.#runningCount += 1;
      entry.state = "running";
      entry.hasRun = true;
      void this.#run(entry);
    }
  }

  /** Never rejects: what a policy throws is an answer. */
  async #run(entry: Entry<Request>): Promise<void> {
    let finish: FinishReason | undefined;
    try {
      finish = await this.#sample(entry);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#options.onComplaint(message);
      finish = entry.pendingAbort ?? { type: "abort", message, status_code: 400 };
    }
    this.#runningCount -= 1;
    if (finish === undefined) this.#retract(entry);
    else this.#finish(entry, finish);
    this.#startWaiting();
  }

  /** Samples until the sequence ends. Returns `undefined` if it goes back to the queue. */
  async #sample(entry: Entry<Request>): Promise<FinishReason | undefined> {
    const { tokenLatencyMs, tokensPerTick } = this.#options;
    entry.iterator ??= iterate(await this.#begin(entry));
    if (entry.forcedEnd?.afterTokens === 0) return entry.forcedEnd.finish;
    if (entry.request.samplesNothing === true) {
      entry.versionSpans.push({ version: this.#options.weightVersion(), start: 0, end: 0 });
      return { type: "length", length: 0 };
    }
    for (let count = 1; ; count++) {
      await this.#untilThawed(entry);
      if (entry.wantsRetraction) return undefined;
      if (tokenLatencyMs > 0) await this.#step(tokenLatencyMs, entry);
      else if (count % tokensPerTick === 0) await setImmediate();

      const next = entry.iterator.next();
      const result = next instanceof Promise ? await orAborted(next, entry) : next;
      if (result === undefined) return entry.pendingAbort;
      if (result.done === true) {
        throw new Error(
          `Cannot go on with request ${entry.request.rid}: the policy ended after ` +
            `${entry.outputIds.length} tokens, expected a stop id or the budget to end the turn`,
        );
      }
      this.#append(entry, result.value);
      const finish = entry.pendingAbort ?? this.#finishAfter(entry, result.value);
      if (finish !== undefined) return finish;
      entry.onProgress?.();
    }
  }

  async #begin(entry: Entry<Request>): Promise<PolicyTokens> {
    const { request, routingKey, aborter } = entry;
    const { inputIds, rid } = request;
    const { policy } = this.#options;
    if (request.scoresInput === true) {
      entry.inputLogprobs = await scoreInput(policy, { inputIds, rid, routingKey });
      if (request.maxNewTokens <= 1) return [FILLER];
    }
    return policy.begin({
      inputIds,
      rid,
      routingKey,
      samplingParams: request.samplingParams,
      maxNewTokens: request.maxNewTokens,
      stopTokenIds: request.stopTokenIds,
      signal: aborter.signal,
    });
  }

  #append(entry: Entry<Request>, { id, logprob }: PolicyToken): void {
    entry.outputIds.push(id);
    entry.outputLogprobs.push(logprob);
    const version = this.#options.weightVersion();
    const end = entry.outputIds.length;
    const last = entry.versionSpans.at(-1);
    if (last?.version === version) last.end = end;
    else entry.versionSpans.push({ version, start: end - 1, end });
  }

  /**
   * Returns the reason if the sequence ends with this token. A budget of 0 still samples one token.
   */
  #finishAfter(entry: Entry<Request>, token: PolicyToken): FinishReason | undefined {
    const { request, outputIds, outputLogprobs, forcedEnd } = entry;
    const { length } = outputIds;
    if (length === forcedEnd?.afterTokens) {
      if (forcedEnd.replaceLastBy !== undefined) {
        outputIds[length - 1] = forcedEnd.replaceLastBy;
        outputLogprobs[length - 1] = Number.NaN;
      }
      return forcedEnd.finish;
    }
    const isFull = length >= request.maxNewTokens;
    if (isFull && !this.#options.stopsBeforeBudget) return { type: "length", length };
    if (request.stopTokenIds.includes(token.id)) return { type: "stop", matched: token.id };
    if (isFull) return { type: "length", length };
    return token.matched === undefined ? undefined : { type: "stop", matched: token.matched };
  }

  /** Waits for one token's time; an abort cuts it short, the token comes all the same. */
  async #step(ms: number, { aborter }: Entry<Request>): Promise<void> {
    try {
      await this.#options.sleep(ms, { signal: aborter.signal });
    } catch (error) {
      if (!aborter.signal.aborted) throw error;
    }
  }

  async #untilThawed(entry: Entry<Request>): Promise<void> {
    while (this.#pause === "in_place" && !entry.aborter.signal.aborted) {
      await orAborted(this.#continued.promise, entry);
    }
  }

  #retract(entry: Entry<Request>): void {
    entry.wantsRetraction = false;
    entry.retractionCount += 1;
    entry.state = "waiting";
    this.#waiting.unshift(entry);
    this.#options.onChange();
  }

  #finish(entry: Entry<Request>, finish: FinishReason): void {
    entry.state = "finished";
    entry.finish = finish;
    this.#live.delete(entry.request.rid);
    entry.onProgress?.();
    entry.settleDone();
    this.#options.onChange();
  }
}

/** The token that is sampled after ids that are only scored. */
const FILLER: PolicyToken = { id: 0, logprob: -1 };

async function scoreInput(
  policy: ServerPolicy,
  request: PolicyScoreRequest,
): Promise<readonly number[]> {
  const logprobs = await policy.score?.(request);
  if (logprobs?.length === request.inputIds.length) return logprobs;
  const problem =
    logprobs === undefined
      ? `policy ${policy.name} cannot score`
      : `policy ${policy.name} gave ${logprobs.length} logprobs`;
  const { length } = request.inputIds;
  throw new Error(`Cannot score request ${request.rid}: ${problem}, expected ${length} logprobs`);
}

function iterate(tokens: PolicyTokens): Iterator<PolicyToken> | AsyncIterator<PolicyToken> {
  return Symbol.asyncIterator in tokens
    ? tokens[Symbol.asyncIterator]()
    : tokens[Symbol.iterator]();
}

/** Resolves with the promise's value, or with `undefined` if the sequence is aborted first. */
function orAborted<T>(promise: Promise<T>, { aborter }: Entry): Promise<T | undefined> {
  const { signal } = aborter;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

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

/**
 * Consecutive tokens that one version of the weights sampled, counted from the first output token.
 */
interface VersionSpan {
  readonly version: string;
  readonly start: number;
  end: number;
}

/** A sequence that the server processes. */
export interface LiveSequence<Request extends SequenceRequest = SequenceRequest> {
  readonly request: Request;
  readonly routingKey: string | undefined;
  readonly outputIds: number[];
  readonly outputLogprobs: number[];
  /** One logprob per input id, if they were requested and the sequence has run. */
  inputLogprobs: readonly number[] | undefined;
  readonly versionSpans: VersionSpan[];
  /**
   * `held`: the sequence arrived during a pause. `waiting`: it is in the scheduler's queue.
   * `running`: it is being sampled. `finished`: it has ended, as `finish` describes.
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
  /** The end comes after this number of tokens, unless the sequence ends earlier. */
  readonly afterTokens: number;
  /** True if the end comes before the sequence runs. */
  readonly inQueue?: boolean;
  readonly finish: FinishReason;
  /** An id that replaces the last token's id. The token's logprob is then NaN. */
  readonly replaceLastBy?: number;
}

/** The facts that are known when a sequence arrives. */
interface Admission {
  readonly routingKey: string | undefined;
  /** The number of cached tokens to report. The number has no other effect. */
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
  /** Maximum number of sequences that are sampled at a time. Further ones wait. */
  readonly maxRunning: number;
  /** The time for one token, in milliseconds. */
  readonly tokenLatencyMs: number;
  /** The number of tokens that are sampled in one round of the event loop. */
  readonly tokensPerTick: number;
  /** True if a stop id that uses up the budget counts as a stop. */
  readonly stopsBeforeBudget: boolean;
  readonly sleep: Clock["sleep"];
  /** Returns the current version of the weights. */
  readonly weightVersion: () => string;
  /** Called with the messages of a policy's errors. */
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
 * Processes sequences as the engine's tokenizer manager and scheduler do: holds sequences that
 * arrive during a pause, queues those beyond its capacity, samples the others token by token, and
 * aborts on request.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py (pause, abort) and
 * scheduler.py (queues, retraction).
 */
export class RequestScheduler<Request extends SequenceRequest = SequenceRequest> {
  readonly #options: SchedulerOptions;
  /** All unfinished sequences by name, in the order of arrival. */
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

  /** The number of tokens of all sequences that are processed. */
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

  /** Accepts a sequence. Its `done` settles when it ends. */
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
   * Aborts every sequence with a name that begins with `rid`, if a sequence with exactly this name
   * is running. Returns true if one is.
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

  /** Ends a sequence, even a held one. Returns true if it existed. */
  drop(rid: string): boolean {
    const entry = this.#live.get(rid);
    if (entry === undefined) return false;
    if (entry.state === "held") this.#finish(entry, { type: "abort", message: "Disconnected" });
    else this.#abortEntry(entry);
    return true;
  }

  /** Ends all sequences, including held ones. Returns their number. */
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

  /** Runs a sequence to its end. Never rejects: a policy's error becomes the reply. */
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
          `Cannot continue request ${entry.request.rid}: the policy ended after ` +
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

  /** Waits for one token's time. An abort ends the wait, but the token is still sampled. */
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

/** The token that is sampled if a request only scores ids. */
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

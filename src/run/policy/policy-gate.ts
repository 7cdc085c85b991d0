import { checkGeneration } from "../../engine/check-sampled.ts";
import { remainingRequest } from "../../engine/continued-sampling.ts";
import type { Engine, GenerateOptions, GenerateRequest, Generation } from "../../engine/engine.ts";
import { withEnd } from "../../engine/find-end.ts";
import { isPromptTooLong } from "../../engine/http/is-prompt-too-long.ts";
import { joinGenerations } from "../../engine/join-generations.ts";
import { emptyGeneration } from "../../engine/empty-generation.ts";
import {
  discardPartialTurn,
  findOutputRule,
  interruptedAfterStreaming,
} from "../../engine/output-rule.ts";
import { passOn } from "../../engine/pass-on.ts";
import { withLostPart } from "../../episode/with-lost-part.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { endedBy } from "../../async/ended-by.ts";
import { startDeadline, type Deadline } from "../../async/deadline.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import { TokenNotifier } from "../../engine/token-notifier.ts";

/**
 * The treatment of turns that are being sampled when the policy's weights change. `finish` lets the engine finish them.
 * `hold` waits until they have ended. `interrupt` cuts them short, and continues them from the sampled tokens, with the
 * new weights; a turn with a constrained format is sampled again from its start. Every token keeps the version that
 * sampled it.
 */
export type UpdateMode = "finish" | "hold" | "interrupt";

/** Options of a `PolicyGate`. */
export interface PolicyGateOptions {
  /**
   * The time in milliseconds in which the engine has to return the tokens of a turn that an update cuts short. Without
   * an answer, the turn continues from the tokens that the engine has streamed, or starts again. Default: no limit.
   */
  readonly graceMs?: number;
  /**
   * Returns the announced policy version, for tokens that the engine streamed but did not return. Called when a call
   * starts. Default: no version is known.
   */
  readonly announcedVersion?: () => number | undefined;
  /** The clock of `graceMs`. Default: the machine's clock. */
  readonly clock?: Clock;
}

/** Puts a gate in front of an engine, so that nothing is sampled while its weights change. */
export class PolicyGate {
  readonly #inner: Engine;
  #closed: Resolvers<void> | undefined;
  /** Functions that cut the running calls short. */
  readonly #cuts = new Set<() => void>();
  #idle: Resolvers<void> | undefined;

  readonly #graceMs: number;
  readonly #announcedVersion: () => number | undefined;
  readonly #clock: Clock;

  constructor(
    engine: Engine,
    {
      graceMs = Infinity,
      announcedVersion = () => undefined,
      clock = systemClock,
    }: PolicyGateOptions = {},
  ) {
    this.#inner = engine;
    this.#graceMs = graceMs;
    this.#announcedVersion = announcedVersion;
    this.#clock = clock;
  }

  /** The number of policy calls that the engine is working on. */
  get runningCount(): number {
    return this.#cuts.size;
  }

  /** Blocks new policy calls until `open()`. Resolves when no call is running; with `finish`, immediately. */
  async close(mode: UpdateMode): Promise<void> {
    if (mode === "finish") return;
    this.#closed ??= withResolvers();
    if (mode === "interrupt") for (const cut of Array.from(this.#cuts)) cut();
    if (this.#cuts.size === 0) return;
    this.#idle ??= withResolvers();
    await this.#idle.promise;
  }

  /** Allows new policy calls. */
  open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }

  /** The engine that episodes use. */
  get engine(): Engine {
    return {
      ...passOn(this.#inner),
      generate: (request, options) => this.#generate(request, options ?? {}),
    };
  }

  async #generate(request: GenerateRequest, caller: GenerateOptions): Promise<Generation> {
    const { options, hasStreamed } = watchStreaming(caller);
    const rule = findOutputRule(request);
    let sampled: Generation | undefined;
    for (let round = 0; ; round++) {
      // The gate may be closed again before the waiting call continues.
      while (this.#closed !== undefined) {
        // A call that is cut short while the gate is closed returns what was sampled, without asking the engine.
        if (options.cutShort?.aborted === true) return sampled ?? emptyGeneration();
        await this.#waitHeld(options);
      }
      if (sampled !== undefined && options.cutShort?.aborted === true) return sampled;
      if (sampled !== undefined && rule !== undefined && hasStreamed()) {
        const { discarded } = discardPartialTurn(sampled, rule);
        const why = "the policy's weights were changed";
        throw interruptedAfterStreaming(request.requestId, { rule, why, discarded });
      }
      const part = sampled;
      const partIds = part?.outputIds ?? [];
      // A turn that cannot be continued is sampled again from its start.
      const rest = remainingRequest(request, partIds, part?.columns) ?? request;
      const next: GenerateRequest =
        part === undefined ? rest : { ...rest, requestId: `${request.requestId}w${round};` };
      const passed = await this.#passPart(next, options, part).catch((error: unknown) => {
        // No room is left after the sampled tokens, so they are the turn.
        const isTurn = rule === undefined && partIds.length > 0;
        if (isTurn && isPromptTooLong(error)) return undefined;
        throw part === undefined ? error : withLostPart(error, part);
      });
      if (passed === undefined) return part!;
      const { generation, isInterrupted } = passed;
      // If the turn cannot be continued, the old tokens stay until there are new ones: a caller that cuts the call
      // short gets them.
      const isEmpty = generation.outputIds.length === 0;
      const stands = isEmpty && (isInterrupted || options.cutShort?.aborted === true);
      const before =
        part === undefined || rule === undefined || stands ? part : discardPartialTurn(part, rule);
      sampled = before === undefined ? generation : joinGenerations(before, generation);
      const isCut =
        isInterrupted &&
        generation.finish.type === "length" &&
        sampled.outputIds.length < request.maxNewTokens &&
        options.cutShort?.aborted !== true;
      if (!isCut) return sampled;
    }
  }

  /**
   * Checks and copies a part of a turn before it goes into the next prompt. The caller gets the unchanged part, and
   * checks it itself.
   */
  async #passPart(
    request: GenerateRequest,
    options: GenerateOptions,
    before: Generation | undefined,
  ): Promise<{ readonly generation: Generation; readonly isInterrupted: boolean }> {
    const hasPart = before !== undefined && before.outputIds.length > 0;
    const { generation, isInterrupted } = await this.#pass(request, options, hasPart);
    const isPart = isInterrupted || before !== undefined;
    const checked = isPart ? checkGeneration(generation, request) : generation;
    return { generation: isInterrupted ? withEnd(checked, request) : checked, isInterrupted };
  }

  async #pass(
    request: GenerateRequest,
    options: GenerateOptions,
    hasPart: boolean,
  ): Promise<{ readonly generation: Generation; readonly isInterrupted: boolean }> {
    const { cutShort, onNotCutShort, signal: caller } = options;
    const controller = createAbortController();
    using time = startDeadline({ ms: Infinity, parents: [caller], clock: this.#clock });
    let isInterrupted = false;
    let isNotCut = false;
    /**
     * Reports to the caller that the engine cannot cut the turn short, if the caller itself requested the cut. The
     * engine reports this only once, possibly for an earlier cut by the gate.
     */
    const passOnNotCut = (): void => {
      if (isNotCut && cutShort?.aborted === true) onNotCutShort?.();
    };
    const interrupt = (): void => {
      isInterrupted = true;
      controller.abort();
      time.shorten(this.#graceMs);
    };
    const forward = (): void => {
      controller.abort(cutShort?.reason);
      passOnNotCut();
      // The tokens sampled before have to be returned while the caller still waits.
      if (hasPart) time.shorten(this.#graceMs / 2);
    };
    if (cutShort?.aborted === true) forward();
    cutShort?.addEventListener("abort", forward, { once: true });
    this.#cuts.add(interrupt);
    // The caller has abandoned the call, so its end is not awaited, even if the engine hangs.
    const leave = (): void => this.#leave(interrupt);
    caller?.addEventListener("abort", leave, { once: true });
    try {
      const gated = {
        ...options,
        cutShort: controller.signal,
        onNotCutShort: () => {
          isNotCut = true;
          passOnNotCut();
        },
      };
      return { generation: await this.#ask(request, gated, time), isInterrupted };
    } finally {
      cutShort?.removeEventListener("abort", forward);
      caller?.removeEventListener("abort", leave);
      leave();
    }
  }

  /**
   * Waits for an engine that cuts a turn short, until the time is over. If no answer comes, or the answer only reports
   * the cut, the streamed tokens take its place.
   */
  async #ask(
    request: GenerateRequest,
    options: GenerateOptions & { readonly cutShort: AbortSignal },
    time: Deadline,
  ): Promise<Generation> {
    const notifier = new TokenNotifier(options);
    const version = this.#announcedVersion();
    const handOver = (): Generation =>
      notifier.toGeneration(request, version === undefined ? "" : `${version}`);
    try {
      return await new Promise<Generation>((resolve, reject) => {
        time.signal.addEventListener("abort", () => {
          notifier.mute();
          if (!time.expired) return;
          options.onAbandoned?.();
          try {
            resolve(handOver());
          } catch (error) {
            reject(error);
          }
        });
        const generating = this.#inner.generate(request, {
          ...notifier.options,
          signal: time.signal,
        });
        // A caller's engine may not return a promise.
        Promise.resolve(generating).then(resolve, reject);
      });
    } catch (error) {
      const isCut = !time.signal.aborted && endedBy(options.cutShort, error);
      if (!isCut) throw error;
      return handOver();
    } finally {
      notifier.mute();
    }
  }

  #leave(call: () => void): void {
    this.#cuts.delete(call);
    if (this.#cuts.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** Waits until the gate is opened, or the caller cuts the call short. The gate may be closed again by then. */
  async #waitHeld({ signal, cutShort, onHeld }: GenerateOptions): Promise<void> {
    signal?.throwIfAborted();
    const opened = this.#closed?.promise;
    onHeld?.(true);
    try {
      await new Promise<void>((resolve, reject) => {
        const onAbort = (): void => reject(signal?.reason as Error);
        const goOn = (): void => {
          signal?.removeEventListener("abort", onAbort);
          cutShort?.removeEventListener("abort", goOn);
          resolve();
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        cutShort?.addEventListener("abort", goOn, { once: true });
        void opened?.then(goOn);
      });
    } finally {
      onHeld?.(false);
    }
  }
}

/** Wraps the options of a call, and records whether the engine has streamed tokens. */
function watchStreaming(caller: GenerateOptions): {
  readonly options: GenerateOptions;
  readonly hasStreamed: () => boolean;
} {
  let hasStreamed = false;
  const { onTokens } = caller;
  const watched: GenerateOptions["onTokens"] =
    onTokens &&
    ((tokens) => {
      hasStreamed ||= tokens.tokenIds.length > 0;
      onTokens(tokens);
    });
  return {
    options: { ...caller, ...(watched && { onTokens: watched }) },
    hasStreamed: () => hasStreamed,
  };
}

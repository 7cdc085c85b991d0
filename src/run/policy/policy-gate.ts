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
import { withLostPart } from "../../episode/with-lost-part.ts";
import { createAbortController } from "../../async/abort-controller.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { endedBy } from "../../async/ended-by.ts";
import { startDeadline, type Deadline } from "../../async/deadline.ts";
import { withResolvers, type Resolvers } from "../../async/with-resolvers.ts";
import { TokenNotifier } from "../schedule/token-notifier.ts";

/**
 * What becomes of the turns that are being sampled when the policy's weights change: `finish` leaves them
 * to the engine, `hold` lets them come to their end before, `interrupt` cuts them short and goes on from
 * the tokens that were sampled, by the new weights, or, where a turn is held to a form as a whole, asks for it anew.
 * Every token keeps the version that sampled it.
 */
export type UpdateMode = "finish" | "hold" | "interrupt";

/** Settings of a `PolicyGate`. */
export interface PolicyGateOptions {
  /**
   * How long the engine may take to hand over what it sampled when a turn is cut short by an update,
   * milliseconds. A turn of which it has told tokens by then goes on from these, and is asked for anew
   * otherwise. Default: however long it takes.
   */
  readonly graceMs?: number;
  /**
   * The version of the policy that was announced last, which tokens carry that the engine told of and did not
   * hand over. It is asked when a call begins. Default: none is known.
   */
  readonly announcedVersion?: () => number | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock;
}

/** An engine with a gate in front of it, so that nothing is sampled while its weights change. */
export class PolicyGate {
  readonly #inner: Engine;
  #closed: Resolvers<void> | undefined;
  /** Cuts the calls short that are under way. */
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

  /** Policy calls that the engine is working on. */
  get runningCount(): number {
    return this.#cuts.size;
  }

  /** Lets no policy call begin until `open()`. Resolves when none is under way, except with `finish`. */
  async close(mode: UpdateMode): Promise<void> {
    if (mode === "finish") return;
    this.#closed ??= withResolvers();
    if (mode === "interrupt") for (const cut of Array.from(this.#cuts)) cut();
    if (this.#cuts.size === 0) return;
    this.#idle ??= withResolvers();
    await this.#idle.promise;
  }

  /** Lets policy calls begin again. */
  open(): void {
    this.#closed?.resolve();
    this.#closed = undefined;
  }

  /** The engine as episodes see it. */
  get engine(): Engine {
    const inner = this.#inner;
    return {
      kind: inner.kind,
      generate: (request, options) => this.#generate(request, options ?? {}),
      ...(inner.score && { score: async (...call) => await inner.score!(...call) }),
      describe: async (options) => await inner.describe(options),
      ...(inner.load && { load: async (options) => await inner.load!(options) }),
      close: async () => await inner.close(),
    };
  }

  async #generate(request: GenerateRequest, caller: GenerateOptions): Promise<Generation> {
    const { options, isTold } = watchTold(caller);
    const demand = findOutputRule(request);
    let sampled: Generation | undefined;
    for (let round = 0; ; round++) {
      // It may be closed again before whoever waited comes round.
      while (this.#closed !== undefined) {
        // Whoever ends while nothing may be sampled takes what there is, and asks for nothing.
        if (options.cutShort?.aborted === true) return sampled ?? emptyGeneration();
        await this.#waitHeld(options);
      }
      if (sampled !== undefined && options.cutShort?.aborted === true) return sampled;
      if (sampled !== undefined && demand !== undefined && isTold()) {
        const { discarded } = discardPartialTurn(sampled, demand);
        const why = "the policy's weights were changed";
        throw interruptedAfterStreaming(request.requestId, { rule: demand, why, discarded });
      }
      const part = sampled;
      const partIds = part?.outputIds ?? [];
      // What cannot go on is asked for from its beginning.
      const behind = remainingRequest(request, partIds) ?? request;
      const rest: GenerateRequest =
        part === undefined ? behind : { ...behind, requestId: `${request.requestId}w${round};` };
      const passed = await this.#passPart(rest, options, part).catch((error: unknown) => {
        // There is no room behind what was sampled before: that is the turn.
        const isTurn = demand === undefined && partIds.length > 0;
        if (isTurn && isPromptTooLong(error)) return undefined;
        throw part === undefined ? error : withLostPart(error, part);
      });
      if (passed === undefined) return part!;
      const { generation, isInterrupted } = passed;
      // What cannot go on stands until there is something in its place: whoever is cut short before takes that.
      const isEmpty = generation.outputIds.length === 0;
      const stands = isEmpty && (isInterrupted || options.cutShort?.aborted === true);
      const before =
        part === undefined || demand === undefined || stands
          ? part
          : discardPartialTurn(part, demand);
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
   * What becomes part of a turn is looked at, and copied, before it goes into the next prompt; whoever asked looks at
   * what is handed on as it came.
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
    /** An update's cut is the gate's own affair; where the caller's comes behind it, the engine says nothing more. */
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
      // What was sampled before is handed over while whoever asked still waits for it.
      if (hasPart) time.shorten(this.#graceMs / 2);
    };
    if (cutShort?.aborted === true) forward();
    cutShort?.addEventListener("abort", forward, { once: true });
    this.#cuts.add(interrupt);
    // Nobody waits for a call any more that its caller gave up, though the engine may hang on.
    const leave = (): void => this.#leave(interrupt);
    caller?.addEventListener("abort", leave, { once: true });
    try {
      const told = {
        ...options,
        cutShort: controller.signal,
        onNotCutShort: () => {
          isNotCut = true;
          passOnNotCut();
        },
      };
      return { generation: await this.#ask(request, told, time), isInterrupted };
    } finally {
      cutShort?.removeEventListener("abort", forward);
      caller?.removeEventListener("abort", leave);
      leave();
    }
  }

  /**
   * An engine that was told to cut the turn short is waited for until the time is over: what it told of by then
   * stands for what it would have handed over, as it does where the engine's answer is that it was told so.
   */
  async #ask(
    request: GenerateRequest,
    options: GenerateOptions & { readonly cutShort: AbortSignal },
    time: Deadline,
  ): Promise<Generation> {
    const told = new TokenNotifier(options);
    const version = this.#announcedVersion();
    const handOver = (): Generation =>
      told.toGeneration(request.requestId, version === undefined ? "" : `${version}`);
    try {
      return await new Promise<Generation>((resolve, reject) => {
        time.signal.addEventListener("abort", () => {
          told.mute();
          if (!time.expired) return;
          options.onAbandoned?.();
          resolve(handOver());
        });
        const generating = this.#inner.generate(request, { ...told.options, signal: time.signal });
        // It may be no promise.
        Promise.resolve(generating).then(resolve, reject);
      });
    } catch (error) {
      const isCut = !time.signal.aborted && endedBy(options.cutShort, error);
      if (!isCut) throw error;
      return handOver();
    } finally {
      told.mute();
    }
  }

  #leave(call: () => void): void {
    this.#cuts.delete(call);
    if (this.#cuts.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** Waits until it is opened, or whoever waits is cut short; it may be closed again by then. */
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

/** What an engine is given, and whether it has told of tokens that it sampled. */
function watchTold(caller: GenerateOptions): {
  readonly options: GenerateOptions;
  readonly isTold: () => boolean;
} {
  let isTold = false;
  const { onTokens } = caller;
  const watched: GenerateOptions["onTokens"] =
    onTokens &&
    ((tokens) => {
      isTold ||= tokens.tokenIds.length > 0;
      onTokens(tokens);
    });
  return { options: { ...caller, ...(watched && { onTokens: watched }) }, isTold: () => isTold };
}

import type { Engine, Generation } from "../engine/engine.ts";
import { passOn } from "../engine/pass-on.ts";
import { describeError, RolloutError, UsageError } from "../errors.ts";
import { withVersion } from "../run/policy/mark-versions.ts";
import { PolicyGate, type PolicyGateOptions, type UpdateMode } from "../run/policy/policy-gate.ts";
import { ServiceError } from "./service-error.ts";

/** Controls sampling on the workers of a queue, so that they follow the service's policy. */
export interface RemoteSampling {
  /** Stops sampling on the workers. Resolves when none of them samples. */
  close(mode: UpdateMode): Promise<void>;
  open(): void;
  announce(version: number): void;
}

/** Pauses sampling for all batches at the same time, and tracks the policy's version. */
export class PolicyControl {
  readonly #own: PolicyGate;
  /** The engines that batches may name, by address. */
  readonly #others: ReadonlyMap<string, PolicyGate>;
  readonly #gateOptions: PolicyGateOptions;
  readonly #remote: RemoteSampling | undefined;
  #version: number | undefined;
  /**
   * The versions that the engine has loaded, by their names. Empty if the caller loads the weights.
   */
  readonly #loaded = new Set<string>();
  #onLost: () => void = () => {};
  #isPaused = false;
  /**
   * Resolves when the last call ends. Calls run one after the other: a pause that is requested during an update waits
   * for the update.
   */
  #doing: Promise<unknown> = Promise.resolve();

  /**
   * @param others - Engines of the same policy by their addresses. They pause together with
   *   `engine` and have its version.
   */
  constructor(
    engine: Engine,
    {
      others = new Map(),
      remote,
      ...gate
    }: PolicyGateOptions & {
      readonly others?: ReadonlyMap<string, Engine>;
      readonly remote?: RemoteSampling | undefined;
    } = {},
  ) {
    this.#remote = remote;
    this.#gateOptions = gate;
    this.#own = this.#gateOf(engine);
    this.#others = new Map(Array.from(others, ([url, other]) => [url, this.#gateOf(other)]));
  }

  #gateOf(engine: Engine): PolicyGate {
    const marked: Engine = {
      ...passOn(engine),
      generate: async (request, options) => {
        // The version cannot change during the call: `update()` waits until no call is running.
        const version = this.#version;
        const generation = await engine.generate(request, options);
        if (version === undefined) return generation;
        this.#refuseLost(generation, String(version));
        return withVersion(generation, { name: String(version), overrules: true });
      },
    };
    return new PolicyGate(marked, { ...this.#gateOptions, announcedVersion: () => this.#version });
  }

  /**
   * Registers a function that is called if the engine samples with weights that the service did not make it load, for
   * example after a restart of its server.
   */
  whenLost(tell: () => void): void {
    this.#onLost = tell;
  }

  /**
   * Refuses a turn whose tokens are from weights that were not announced.
   *
   * @throws RolloutError `engine/lost-weights` for tokens from weights that were not announced.
   */
  #refuseLost({ pieces }: Generation, version: string): void {
    if (!this.#loaded.has(version)) return;
    // A server may report an earlier announced version for a moment.
    const other = pieces.find(
      ({ tokenCount, policyVersion }) =>
        tokenCount > 0 && policyVersion !== "" && !this.#loaded.has(policyVersion),
    );
    if (other === undefined) return;
    this.#onLost();
    throw new RolloutError(
      "engine/lost-weights",
      `Cannot sample the turn: the engine says that its weights are of the version ${other.policyVersion}, ` +
        `expected ${version}, which it was had to load; was it started again?`,
      { retryable: true },
    );
  }

  /**
   * Returns the engine at an address for batches, or the service's own engine without an address.
   */
  engineAt(url?: string): Engine | undefined {
    return (url === undefined ? this.#own : this.#others.get(url))?.engine;
  }

  /** The version that was announced last. `undefined` before the first. */
  get version(): number | undefined {
    return this.#version;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /**
   * Restores the version and the pause of an earlier start. Workers keep their gates as they are
   * until `begin()`.
   */
  restore(version: number | undefined, isPaused: boolean): void {
    this.#version = version;
    this.#loaded.clear();
    this.#isPaused = isPaused;
    if (version !== undefined) this.#remote?.announce(version);
    if (!isPaused) return;
    // No engine samples yet, so there is no call to wait for.
    for (const gate of this.#gates) void gate.close("hold");
  }

  /**
   * Interrupts sampling on the workers. Call it before `begin()`.
   * @throws UsageError if the workers cannot be reached.
   */
  async stopSampling(): Promise<void> {
    try {
      await this.#remote?.close("interrupt");
    } catch (cause) {
      throw new UsageError(
        `Cannot begin: sampling cannot be paused at the workers: ${describeError(cause)}; start again when ` +
          "the queue's store takes it",
        { cause },
      );
    }
  }

  /**
   * Starts sampling on all engines and workers, unless the policy is paused. Call it when the
   * engine has its weights.
   */
  begin(): void {
    if (!this.#isPaused) this.#open();
  }

  get #gates(): readonly PolicyGate[] {
    return [this.#own, ...this.#others.values()];
  }

  async #close(mode: UpdateMode): Promise<void> {
    await Promise.all([...this.#gates.map((gate) => gate.close(mode)), this.#closeRemote(mode)]);
  }

  /**
   * Pauses sampling at the workers.
   *
   * @throws ServiceError `engine-failed` if the workers cannot be reached.
   */
  async #closeRemote(mode: UpdateMode): Promise<void> {
    try {
      await this.#remote?.close(mode);
    } catch (cause) {
      const message = `Sampling cannot be paused at the workers: ${describeError(cause)}; all is as it was`;
      throw new ServiceError("engine-failed", message, { cause });
    }
  }

  #open(): void {
    for (const gate of this.#gates) gate.open();
    this.#remote?.open();
  }

  /**
   * Interrupts sampling until `resume()`. Resolves when the engine is idle and `note` has recorded
   * the pause.
   * @throws ServiceError `engine-failed` if the workers cannot be reached. `update()` and
   *   `repair()` throw it too.
   */
  async pause(note: () => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      await this.#whileClosed(async () => {
        this.#isPaused = true;
        await note();
      });
    });
  }

  /** Keeps sampling paused after the current `update()`, because the engine's weights are wrong. */
  async holdAfterUpdate(note: () => Promise<void>): Promise<void> {
    this.#isPaused = true;
    await note();
  }

  async resume(note: () => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      await note();
      this.#isPaused = false;
      this.#open();
    });
  }

  /**
   * Changes the policy. Interrupts sampling, calls `update`, and continues. If `update` throws,
   * continues with the earlier weights.
   * @param check - Throws if the version is not acceptable. Returns false if it is already current.
   * @param update - Returns true if the engine loaded weights under the version's name.
   */
  async update(
    version: number,
    { check, update }: { readonly check: () => boolean; readonly update: () => Promise<boolean> },
  ): Promise<void> {
    await this.#inTurn(async () => {
      if (!check()) return;
      await this.#whileClosed(async () => {
        const hasLoaded = await update();
        this.#version = version;
        if (hasLoaded) this.noteLoaded();
        else this.#loaded.clear();
        this.#remote?.announce(version);
      });
    });
  }

  /** Records that the engine has loaded the version that was announced last. */
  noteLoaded(): void {
    this.#loaded.add(String(this.#version));
  }

  /** Interrupts sampling, awaits work on the engine, and continues. */
  async repair(work: () => Promise<void>): Promise<void> {
    await this.#inTurn(async () => await this.#whileClosed(work));
  }

  /**
   * Interrupts sampling and awaits work. Then opens all gates, even if some of them could not be closed, unless the
   * policy is paused.
   */
  async #whileClosed(work: () => Promise<void>): Promise<void> {
    try {
      await this.#close("interrupt");
      await work();
    } finally {
      if (!this.#isPaused) this.#open();
    }
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#doing.then(work);
    this.#doing = done.catch(() => {});
    await done;
  }
}

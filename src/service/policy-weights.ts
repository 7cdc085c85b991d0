import type { Weights } from "../engine/http/weight-servers.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { PolicyControl } from "./policy-control.ts";
import { ServiceError } from "./service-error.ts";
import type { PolicyMemory } from "./policy-memory.ts";
import type { ServiceEntry } from "./service-journal.ts";

/** Changes the weights of an engine. */
export interface WeightControl {
  /** True if samples name the version of the loaded weights. The service then detects a server with other weights. */
  readonly namesVersions?: boolean;
  /**
   * Finds a problem with weights before they are used. Returns `undefined` if none is known.
   * @throws RolloutError if the engine does not answer.
   */
  findProblem?(weights: Weights): Promise<string | undefined>;
  /**
   * Makes the engine load weights.
   * @throws RolloutError if the engine does not load them. It then has the earlier weights. After the code
   *   `engine/mixed-weights` its servers have different weights, and nothing may be sampled.
   */
  load(weights: Weights): Promise<void>;
  /** Resolves with true if the engine certainly has the weights. */
  have(weights: Weights): Promise<boolean>;
}

/** A version of the policy, as a caller announces it. */
export interface Announcement {
  readonly version: number;
  /** The weights to load. Absent if the caller has loaded them. */
  readonly weights?: string;
  /**
   * True if the trainer started again. The version may then be lower than before, if no batch is
   * unfinished.
   */
  readonly restart?: boolean;
}

/** The error code for servers with different weights. */
const mixedWeights = "engine/mixed-weights";

const mixedMessage =
  "The engine's servers may have different weights: sampling stays paused until others were announced that " +
  "all of them load, and resumed";

/**
 * The announced versions and weights of the policy. Each is in the journal before it takes effect.
 */
export class PolicyWeights {
  readonly #policy: PolicyControl;
  readonly #control: WeightControl | undefined;
  readonly #engineKind: string;
  readonly #append: (entry: ServiceEntry) => Promise<void>;
  /** The path of the weights that were announced last. */
  #weights: string | undefined;
  /** True if the engine's servers may have different weights. */
  #isMixed = false;
  #isRegaining = false;

  constructor(about: {
    readonly policy: PolicyControl;
    /** Loads weights. `undefined` if the engine cannot. */
    readonly control: WeightControl | undefined;
    readonly engineKind: string;
    readonly append: (entry: ServiceEntry) => Promise<void>;
    /** Awaits work. If it fails, the service ends, unless the error refuses a call. */
    readonly orFail: (work: Promise<void>) => Promise<void>;
  }) {
    this.#policy = about.policy;
    this.#control = about.control;
    this.#engineKind = about.engineKind;
    this.#append = about.append;
    // A failure that is not an outage ends the service.
    this.#policy.whenLost(() => void about.orFail(this.#regain()).catch(() => {}));
  }

  /**
   * Makes a server that lost its weights load them again. If that fails, the server's next sample shows other weights
   * again.
   */
  async #regain(): Promise<void> {
    const { version } = this.#policy;
    if (this.#isRegaining || version === undefined) return;
    this.#isRegaining = true;
    try {
      await this.#policy.repair(async () => {
        const path = this.#weights;
        // During the wait, another version was announced, or other weights were loaded.
        if (this.#policy.version !== version || path === undefined || this.#isMixed) return;
        await this.#loadOrHold({ path, version: String(version) });
      });
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
    } finally {
      this.#isRegaining = false;
    }
  }

  /** Interrupts sampling until `resume()`. Interrupted turns continue after that. Resolves when the engine is idle. */
  async pause(): Promise<void> {
    await this.#policy.pause(() => this.#append({ type: "paused", isPaused: true }));
  }

  /**
   * Ends the pause, and records that.
   *
   * @throws ServiceError `engine-failed` while the engine's servers may have different weights.
   */
  async resume(): Promise<void> {
    if (this.#isMixed) throw new ServiceError("engine-failed", mixedMessage);
    await this.#policy.resume(() => this.#append({ type: "paused", isPaused: false }));
  }

  /**
   * Announces a version of the policy, and makes the engine load its weights if they are named.
   * @param isBusy - True if batches are unfinished.
   * @throws ServiceError `version-not-newer`, `bad-request` or `engine-failed`.
   */
  async announce(announced: Announcement, isBusy: () => boolean): Promise<void> {
    const { version, weights } = announced;
    if (weights !== undefined && this.#control === undefined) {
      const message =
        `"weights" is wrong: the service cannot have this engine (${this.#engineKind}) ` +
        "load any; update it yourself and announce the version without them";
      throw new ServiceError("bad-request", message);
    }
    if (weights !== undefined && (version !== this.#policy.version || weights !== this.#weights)) {
      await this.#refuseUnusable({ path: weights, version: String(version) });
    }
    await this.#policy.update(version, {
      check: () => this.#isNewVersion(announced, isBusy),
      update: async () => {
        if (weights !== undefined) await this.#load(version, weights);
        await this.#append({ type: "policy", version, ...(weights !== undefined && { weights }) });
        this.#weights = weights;
        if (weights !== undefined) this.#isMixed = false;
        return weights !== undefined && this.#control?.namesVersions === true;
      },
    });
  }

  /** Restores the policy's state from the journal. */
  restore({ version, weights, isPaused }: PolicyMemory): void {
    this.#weights = weights?.path;
    this.#policy.restore(version, isPaused);
  }

  /**
   * Makes sure that the engine has the last announced weights, and then opens the gate unless the
   * policy is paused. An engine in this process starts with its initial weights, and servers may
   * have been restarted. If this throws, nothing is sampled.
   * @throws UsageError if the engine does not load them, or if the workers cannot be reached.
   */
  async reload({ weights: announced, loading }: PolicyMemory): Promise<void> {
    // A start that ended while loading may have reached only some servers, so all of them load
    // again.
    const wanted = loading ?? announced;
    if (this.#control !== undefined && wanted !== undefined) {
      const { version, path } = wanted;
      const weights: Weights = { path, version: String(version) };
      try {
        await this.#provide(weights, { isSure: loading === undefined });
      } catch (error) {
        if (!(error instanceof RolloutError)) throw error;
        throw new UsageError(
          `Cannot continue with the policy's version ${version}: ${error.message}; see to it that the engine ` +
            "can load these weights, or choose another --out",
          { cause: error },
        );
      }
      if (loading !== undefined) {
        await this.#append({ type: "policy", version, weights: path });
        this.#weights = path;
        this.#policy.restore(version, this.#policy.isPaused);
      }
      if (this.#control.namesVersions === true) this.#policy.noteLoaded();
    }
    this.#policy.begin();
  }

  /** Makes the engine load weights unless it certainly has them. Nothing is sampled in the meantime. */
  async #provide(weights: Weights, { isSure }: { readonly isSure: boolean }): Promise<void> {
    const control = this.#control!;
    if (isSure && (await control.have(weights))) return;
    const problem = await control.findProblem?.(weights);
    if (problem !== undefined) throw new RolloutError("engine/server-error", problem);
    await this.#policy.stopSampling();
    await control.load(weights);
  }

  /**
   * Rejects weights with a known problem before sampling is paused. Some servers accept weights
   * that they cannot use, and some crash.
   * @throws ServiceError `bad-request` for such weights, `engine-failed` if the engine does not
   *   answer.
   */
  async #refuseUnusable(weights: Weights): Promise<void> {
    let problem: string | undefined;
    try {
      problem = await this.#control?.findProblem?.(weights);
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      throw new ServiceError("engine-failed", error.message, { cause: error });
    }
    if (problem !== undefined) {
      throw new ServiceError("bad-request", `"weights" is wrong: ${problem}`);
    }
  }

  /**
   * Makes the engine load weights. Writes the start and a failure to the journal, so that the next
   * start knows which weights the servers may have.
   * @throws ServiceError `engine-failed` if the engine does not load them.
   */
  async #load(version: number, weights: string): Promise<void> {
    await this.#append({ type: "policy-loading", version, weights });
    try {
      await this.#loadOrHold({ path: weights, version: String(version) });
    } catch (error) {
      // An outage is reported, and the service continues.
      if (!(error instanceof RolloutError)) throw error;
      if (error.code !== mixedWeights) await this.#append({ type: "policy-kept" });
      const message = this.#isMixed ? `${error.message}. ${mixedMessage}` : error.message;
      throw new ServiceError("engine-failed", message, { cause: error });
    }
  }

  /**
   * Loads weights within a change of the policy. Nothing is sampled while servers may have
   * different weights.
   */
  async #loadOrHold(weights: Weights): Promise<void> {
    try {
      await this.#control!.load(weights);
    } catch (error) {
      if (error instanceof RolloutError && error.code === mixedWeights) {
        this.#isMixed = true;
        await this.#policy.holdAfterUpdate(() => this.#append({ type: "paused", isPaused: true }));
      }
      throw error;
    }
  }

  #isNewVersion(
    { version, weights, restart = false }: Announcement,
    isBusy: () => boolean,
  ): boolean {
    const { version: current } = this.#policy;
    if (current === undefined || version > current) return true;
    if (version === current && weights === this.#weights) return false;
    if (restart && !isBusy()) return true;
    if (restart) {
      // The later tokens of a row would have a lower version than the earlier ones.
      throw new ServiceError(
        "version-not-newer",
        `The policy has the version ${current}, and batches are unfinished: cancel them before it goes back ` +
          `to ${version}`,
      );
    }
    throw new ServiceError(
      "version-not-newer",
      version === current
        ? `Version ${version} was announced with other weights`
        : `The policy has the version ${current}: expected a higher one than ${version}`,
    );
  }
}

import type { Episode } from "../../episode/episode.ts";
import { describeError, UsageError } from "../../errors.ts";
import type { AttemptPlayer } from "../attempt/attempt-player.ts";
import type { PolicyGate, UpdateMode } from "./policy-gate.ts";
import { requireVersion, type GroupCounts, type PolicyVersions } from "./staleness.ts";

interface PolicyControlOptions {
  readonly gate: PolicyGate;
  readonly versions: PolicyVersions;
  readonly player: AttemptPlayer | undefined;
  /** The numbers of groups so far. */
  readonly groups: GroupCounts;
  /** Called when a new version may let the run start another group. */
  readonly onVersion: () => void;
  /** Requests the engine's policy version. */
  readonly askVersion: () => Promise<void>;
}

/**
 * Pauses sampling, updates the policy's weights, and announces their versions. Sampling stays blocked while any of these
 * is true: the run is paused, an update is running, or the last update failed.
 */
export class PolicyControl {
  readonly #options: PolicyControlOptions;
  #isPaused = false;
  #updateCount = 0;
  /** True after a failed update: the weights may be partly written. */
  #mayBeHalfUpdated = false;

  constructor(options: PolicyControlOptions) {
    this.#options = options;
  }

  /** Records that the weights have this version from now on, in this process and in the player's processes. */
  announce(version: number): void {
    const { groups, onVersion, player, versions } = this.#options;
    versions.announce(version, groups);
    try {
      player?.announcePolicy?.(version);
    } finally {
      // The version counts even if the player throws.
      onVersion();
    }
  }

  /** Runs `update` while sampling is blocked according to `mode`, then announces the version. */
  async update(version: number, update: () => Promise<void>, mode: UpdateMode): Promise<void> {
    requireVersion(version);
    this.#updateCount += 1;
    try {
      await this.#closeGates(mode);
      await this.#tryUpdate(version, update, mode);
      this.announce(version);
    } finally {
      this.#updateCount -= 1;
      this.#openGatesIfFree();
    }
  }

  async #tryUpdate(version: number, update: () => Promise<void>, mode: UpdateMode): Promise<void> {
    try {
      await update();
      this.#mayBeHalfUpdated = false;
    } catch (cause) {
      this.#mayBeHalfUpdated = true;
      // The mode `finish` leaves the gates open during the update: close them now.
      if (mode === "finish") this.#closeGates("hold").catch(() => {});
      throw new UsageError(
        `Cannot update the policy to version ${version}: ${describeError(cause)}; nothing is sampled until ` +
          "resume(), or an update that succeeds",
        { cause },
      );
    }
  }

  async pause(mode: Exclude<UpdateMode, "finish">): Promise<void> {
    this.#isPaused = true;
    await this.#closeGates(mode);
  }

  resume(): void {
    this.#isPaused = false;
    this.#mayBeHalfUpdated = false;
    this.#openGatesIfFree();
  }

  /**
   * Records the versions of episodes that this start did not sample. They do not show the engine's current version.
   *
   * @param mayAsk - True if the engine should be asked for its version, before a trainer takes these episodes.
   */
  async recall(episodes: readonly Episode[], mayAsk: boolean): Promise<void> {
    this.#options.versions.recall(episodes);
    if (episodes.length > 0 && mayAsk && this.#updateCount === 0) await this.#options.askVersion();
  }

  /** Blocks sampling in this process and in the player's processes. */
  async #closeGates(mode: UpdateMode): Promise<void> {
    const { gate, player } = this.#options;
    await Promise.all([gate.close(mode), player?.pause?.(mode)]);
  }

  #openGatesIfFree(): void {
    if (this.#isPaused || this.#mayBeHalfUpdated || this.#updateCount > 0) return;
    this.#options.gate.open();
    this.#options.player?.resume?.();
  }
}

import { requireIds } from "../composition/config/chat-config.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { UsageError } from "../errors.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import type { LiveRun, RunResult } from "../run/live-run.ts";
import type { UpdateMode } from "../run/policy/policy-gate.ts";
import type { EpisodeGroup } from "../run/schedule/group.ts";
import type { AdvantageEstimator } from "../run/schedule/advantages.ts";
import {
  requireTurnAdvantages,
  turnAdvantages,
  type TurnAdvantageOptions,
} from "../run/schedule/turn-advantages.ts";
import { openParts } from "./open-parts.ts";
import { playGroups } from "./play-groups.ts";
import type { RolloutGroup, RolloutOptions } from "./rollout-options.ts";

/**
 * A rollout: iterate it for its groups, or await it for its result.
 *
 * It starts when you first iterate or await it. Leaving the loop stops it. After the loop, `await` gives the result.
 * An async function that returns a rollout awaits it: return an object that has the rollout as a member.
 */
export interface Rollout extends AsyncIterable<RolloutGroup>, PromiseLike<RunResult> {
  /** Iterates over the groups in the order in which they end. All loops share one iterator. */
  [Symbol.asyncIterator](): AsyncGenerator<RolloutGroup, void, undefined>;
  /**
   * Announces that the policy's weights have this version from now on. Tokens get the version if
   * the engine reports none that is a whole number. May be called before the rollout starts.
   */
  announcePolicy(version: number): void;
  /**
   * Changes the policy's weights while episodes continue: see `UpdateMode`. If `update` fails, the policy samples
   * nothing until `resume()` or until an update succeeds.
   *
   * @throws UsageError if the rollout has not started, if the version is not a whole number, and with the cause if
   *   `update` throws.
   */
  updatePolicy(version: number, update: () => Promise<void>, mode?: UpdateMode): Promise<void>;
  /** Stops sampling until `resume()`. The default mode is `hold`. */
  pause(mode?: Exclude<UpdateMode, "finish">): Promise<void>;
  /** Continues to sample after `pause()` or a failed update. */
  resume(): Promise<void>;
  /**
   * Starts no further episodes, and ends the running ones as `aborted`. With `out`, the next start
   * continues them. Resolves when the rollout has ended.
   */
  interrupt(): Promise<RunResult>;
}

/**
 * Plays episodes in groups: all attempts at one task together, each with its training rows.
 *
 * With `out`, the run is also written to a folder, and a later start plays the missing episodes. A
 * group that the later start completes includes the attempts of earlier starts. A group that was
 * complete before is not yielded again (see `redeliver`).
 *
 * Iterating and awaiting throw the same errors:
 *
 * @throws UsageError if the options cannot be used.
 * @throws TypeError if `turnAdvantages` has an unknown estimator, or a discount that is not from 0 to 1.
 * @throws RolloutError if the engine does not answer, or if `maxFailures` episodes fail in a row.
 * @throws the reason of `signal` if it aborts.
 */
export function rollout(options: RolloutOptions): Rollout {
  return new StartedByUse(options);
}

const evaluateRemedy =
  "measure the model with `evaluate()`, or use an engine that returns ids, such as sglang or vllm";

/** A rollout that starts when it is first iterated or awaited. */
class StartedByUse implements Rollout {
  readonly #options: RolloutOptions;
  readonly #live = withResolvers<LiveRun>();
  readonly #result = withResolvers<RunResult>();
  /** The groups as they end. Iterating and awaiting share this generator. */
  readonly #played = this.#play();
  /** The groups with their rows, for the caller's loops. */
  readonly #groups = this.#withRows();
  #isStarted = false;
  #liveRun: LiveRun | undefined;
  /** The version that was announced before the run started. */
  #firstVersion: number | undefined;

  constructor(options: RolloutOptions) {
    this.#options = options;
    // The caller's loop reports the same error.
    this.#live.promise.catch(() => {});
    this.#result.promise.catch(() => {});
  }

  [Symbol.asyncIterator](): AsyncGenerator<RolloutGroup, void, undefined> {
    return this.#groups;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- A rollout can be awaited for its result.
  then<Value = RunResult, Failure = never>(
    onResult?: ((result: RunResult) => Value | PromiseLike<Value>) | null,
    onError?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    if (!this.#isStarted) void this.#drain();
    return this.#result.promise.then(onResult, onError);
  }

  announcePolicy(version: number): void {
    if (this.#liveRun === undefined) this.#firstVersion = version;
    else this.#liveRun.announcePolicy(version);
  }

  async updatePolicy(
    version: number,
    update: () => Promise<void>,
    mode?: UpdateMode,
  ): Promise<void> {
    await (await this.#started("update the policy")).updatePolicy(version, update, mode);
  }

  async pause(mode?: Exclude<UpdateMode, "finish">): Promise<void> {
    await (await this.#started("pause")).pause(mode);
  }

  async resume(): Promise<void> {
    (await this.#started("resume")).resume();
  }

  async interrupt(): Promise<RunResult> {
    return await (await this.#started("interrupt")).interrupt();
  }

  async #started(doing: string): Promise<LiveRun> {
    if (this.#isStarted) return await this.#live.promise;
    throw new UsageError(
      `Cannot ${doing}: the rollout has not started; iterate or await it first (announcePolicy() ` +
        "names the version of the first weights)",
    );
  }

  /** The arguments of `turnAdvantages()` after the group. `undefined` without the option. */
  get #advantages(): readonly [AdvantageEstimator, TurnAdvantageOptions] | undefined {
    if (this.#options.turnAdvantages === undefined) return undefined;
    const { estimator = "grpo", ...more } = this.#options.turnAdvantages;
    return [estimator, more];
  }

  async *#withRows(): AsyncGenerator<RolloutGroup, void, undefined> {
    const advantages = this.#advantages;
    for await (const group of this.#played) {
      yield {
        ...withSamples(group),
        ...(advantages && { turnAdvantages: turnAdvantages(group, ...advantages) }),
      };
    }
  }

  async *#play(): AsyncGenerator<EpisodeGroup, void, undefined> {
    this.#isStarted = true;
    try {
      if (this.#advantages !== undefined) requireTurnAdvantages(...this.#advantages);
      await using parts = await openParts(this.#options);
      if (parts.setup.engine.complete !== undefined) {
        requireIds({ kind: "chat" }, { doing: "play a rollout", remedy: evaluateRemedy });
      }
      const onStart = (live: LiveRun): void => {
        if (this.#firstVersion !== undefined) live.announcePolicy(this.#firstVersion);
        this.#liveRun = live;
        this.#live.resolve(live);
      };
      yield* playGroups(parts, this.#options, onStart);
    } catch (error) {
      this.#live.reject(error);
      this.#result.reject(error);
      throw error;
    } finally {
      this.#liveRun?.result.then(this.#result.resolve, this.#result.reject);
    }
  }

  /** Plays all groups for a caller that awaits only the result. Creates no rows. */
  async #drain(): Promise<void> {
    try {
      for await (const _ of this.#played);
    } catch {
      // The result rejects with the same error.
    }
  }
}

function withSamples(group: EpisodeGroup): RolloutGroup {
  const episodes = group.episodes.map((episode) => ({
    ...episode,
    samples: episodeSamples(episode),
  }));
  return { ...group, episodes };
}

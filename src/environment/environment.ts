import type { ToolDefinition } from "../message.ts";
import type { PyDict } from "../python/value.ts";
import type { Outside } from "../outside.ts";
import type { Task } from "../task.ts";
import type { UserSession, UserUsage } from "../user/user.ts";

/** What the agent does in the environment. */
export type Action =
  | { readonly type: "say"; readonly content: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: PyDict };

/** What an action caused. */
export interface Step {
  /** What the agent is shown: the tool's result or the user's line. */
  readonly observation: string;
  /** Who it comes from. */
  readonly from: "tool" | "user";
  /** The tool's name, or `user`. */
  readonly source: string;
  /** Whether the tool changed nothing and reports a mistake of the caller's. */
  readonly isError?: boolean;
  /** Why the episode is over; absent while it goes on. */
  readonly done?: "user-left" | "terminal-tool" | "finished";
}

/** What an episode was worth. JSON-able. */
export interface Score {
  /** `null` where nothing scored the attempt, which is not 0: its episode has no reward then. */
  readonly reward: number | null;
  /** How the reward came about, in the environment's own words (for τ-bench its reward_info). */
  readonly details: Readonly<Record<string, unknown>>;
}

/** One attempt's world: opened per episode, single use, nothing shared, nothing to reset. */
export interface World extends AsyncDisposable {
  /** The tools of this task, where they are others than the environment's. */
  readonly tools?: readonly ToolDefinition[];
  /** The policy text of this task, where it is another than the environment's. */
  readonly policyText?: string;
  /** The first thing the agent reads: the user's opening line. */
  begin(options: { signal: AbortSignal }): Promise<string>;
  /**
   * Performs one action. A mistake of the model's is an observation.
   *
   * @throws RolloutError with party `user` or `environment` on an outage.
   * @throws InvariantError when stepped after it was done.
   */
  step(action: Action, options: { signal: AbortSignal }): Promise<Step>;
  /**
   * Scores what was reached. Called once, after the last step, also where the episode ended
   * without being done (the environment's own rule then applies).
   */
  score(options: { signal: AbortSignal }): Promise<Score>;
  /** What the user cost so far. */
  userUsage(): UserUsage;
  /**
   * A hash of everything that tools can change: equal hashes, equal states. For people who compare
   * (`replayCalls()`); absent where the world has no state of its own to hash.
   */
  stateHash?(options: { signal: AbortSignal }): Promise<string>;
  /**
   * Clears it away. An episode gives a signal, which aborts when it waits no longer (`toolTimeoutMs`): what is held
   * up by then by a part that hangs should be let go all the same. A world that wraps another passes it on.
   */
  [Symbol.asyncDispose](options?: { readonly signal: AbortSignal }): PromiseLike<void>;
}

/** A domain: tools, policy text, state, scoring. */
export interface Environment<Data = unknown> {
  /** Such as `tau-retail`. */
  readonly name: string;
  /** Where its data comes from, in words. */
  readonly source: string;
  /** Number of tasks of each split. */
  readonly splits: Readonly<Record<string, number>>;
  /** Those of every task whose world names no others. */
  readonly tools: readonly ToolDefinition[];
  /** What the agent is told to go by: the system message. A task's world may have another. */
  readonly policyText: string;
  /** The file and line that define it, such as `lamps.js:12`, to be named where something of it hangs. */
  readonly definedAt?: string;
  /**
   * @throws UsageError for an unknown split or an index out of range.
   */
  task(split: string, index: number): Task<Data>;
  /**
   * Whether a world that is given the same actions, the same user's lines and the same answers of
   * `outside` answers alike. Its episodes can then go on after a crash, be forked, and be scored anew.
   * Where it is not so, or not said, its answers themselves are recorded: its episodes can be played
   * again, and an episode that a crash cut off begins anew. Default false.
   */
  readonly repeatable?: boolean;
  /** Opens a world for one episode. Cheap: must not copy or parse the base data. */
  open(
    task: Task<Data>,
    options: {
      readonly user: UserSession;
      readonly signal: AbortSignal;
      /** For what the world cannot repeat by itself; absent outside of episodes: see `callThrough`. */
      readonly outside?: Outside;
    },
  ): Promise<World>;
}

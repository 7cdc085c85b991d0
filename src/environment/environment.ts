import type { AssistantMessage, ToolDefinition } from "../message.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { RewardComponents } from "./reward-parts.ts";
import type { Outside } from "../outside.ts";
import type { ComparedMembers } from "./compared-members.ts";
import type { Task } from "../task.ts";
import type { UserSession, UserUsage } from "../user/user.ts";

/** An agent's action in the environment. */
export type Action =
  | { readonly type: "say"; readonly content: string }
  | { readonly type: "call"; readonly name: string; readonly arguments: PyDict };

/** A turn of the agent, for worlds that take a turn as a whole. */
export interface AgentTurn {
  /** The turn as a message, with all its calls. */
  readonly message: AssistantMessage;
  /** The reason for the end of the turn. `length` if the turn was cut off at its limit, otherwise `stop`. */
  readonly finish: "stop" | "length";
  /** The number of the prompt's tokens and of the sampled tokens. Absent if the caller does not sample. */
  readonly usage?: { readonly promptTokens: number; readonly sampledTokens: number };
  /** The actions that are performed, in order. `callId` is the id of the action's call in the message, if it is a call. */
  readonly actions: readonly { readonly callId: string; readonly action: Action }[];
}

/** The result of an action. */
export interface Step {
  /** The text that the agent sees: the tool's result or the user's line. */
  readonly observation: string;
  /** The origin of the observation. */
  readonly from: "tool" | "user";
  /** The tool's name, or `user`. */
  readonly source: string;
  /** True if the tool reports a mistake of the caller and changed nothing. */
  readonly isError?: boolean;
  /** The reason why the episode is over. Absent while it continues. */
  readonly done?: "user-left" | "terminal-tool" | "finished";
}

/** An episode's score. JSON-able. */
export interface Score {
  /** `null` if the attempt is unscored: its episode has no reward, which differs from 0. */
  readonly reward: number | null;
  /** The reasons for the reward, in the environment's own format (τ-bench: its reward_info). */
  readonly details: Readonly<Record<string, unknown>>;
  /** The named parts of the reward. Their weighted sum is the reward. Default: none. */
  readonly components?: RewardComponents;
  /** The part of the reward that each turn of the agent earned. Their sum is the reward. Default: none. */
  readonly turnRewards?: readonly number[];
  /** True if the attempt reached its goal. Evaluations count such attempts. Default: true if the reward is 1. */
  readonly success?: boolean;
}

/** One attempt's world. A world is opened for one episode, shares no state and is never reset. */
export interface World extends AsyncDisposable {
  /** The tools of this task, if they differ from the environment's. */
  readonly tools?: readonly ToolDefinition[];
  /** The policy text of this task, if it differs from the environment's. */
  readonly policyText?: string;
  /** Returns the user's opening line, which the agent reads first. */
  begin(options: { signal: AbortSignal }): Promise<string>;
  /**
   * Performs one action. A mistake of the model is answered with an observation.
   *
   * @param options.turn - The turn of the action: the same object for each of its actions. Absent if the caller has
   *   no turns.
   * @throws RolloutError with party `user` or `environment` on an outage.
   * @throws InvariantError when stepped after it was done.
   */
  step(action: Action, options: { signal: AbortSignal; readonly turn?: AgentTurn }): Promise<Step>;
  /**
   * Scores the episode. Called once, after the last step. An episode that reached a limit is scored by the
   * environment's own rule.
   *
   * @param options.actionCounts - The number of actions that each turn of the agent performed, in order. Absent
   *   if the agent keeps its conversations itself.
   */
  score(options: {
    signal: AbortSignal;
    readonly actionCounts?: readonly number[];
  }): Promise<Score>;
  /** The user's token usage so far. */
  userUsage(): UserUsage;
  /**
   * A hash of the state that tools can change: equal hashes mean equal states. `replayCalls()` compares them.
   * Absent if the world has no state to hash.
   */
  stateHash?(options: { signal: AbortSignal }): Promise<string>;
  /**
   * Releases the world. The signal aborts after `toolTimeoutMs`, when the episode stops waiting:
   * release the other parts even if one part hangs. A world that wraps another passes the signal
   * on.
   */
  [Symbol.asyncDispose](options?: { readonly signal: AbortSignal }): PromiseLike<void>;
}

/** A domain: tools, policy text, state and scoring. */
export interface Environment<Data = unknown> {
  /** The environment's name, for example `tau-retail`. */
  readonly name: string;
  /** The origin of the environment's data, in words. */
  readonly source: string;
  /** Number of tasks of each split. */
  readonly splits: Readonly<Record<string, number>>;
  /** The tools of every task, unless its world has its own `tools`. */
  readonly tools: readonly ToolDefinition[];
  /** The agent's instructions: the system message. A task's world may have its own. */
  readonly policyText: string;
  /**
   * The file and line of the definition, such as `desk.js:12`. Messages name it if a part of the environment hangs.
   */
  readonly definedAt?: string;
  /**
   * Returns the task at an index of a split.
   *
   * @throws UsageError for an unknown split or an index out of range.
   */
  task(split: string, index: number): Task<Data>;
  /**
   * True if a world repeats its answers, given the same actions, the same user's lines and the same answers of
   * `outside`. Episodes can then resume after a crash, be forked and be scored again. Otherwise the world's answers
   * are recorded: finished episodes can be replayed, but an episode that a crash interrupted starts again. Default
   * false.
   */
  readonly repeatable?: boolean;
  /** Opens a world for one episode. Must be cheap: do not copy or parse the base data. */
  open(
    task: Task<Data>,
    options: {
      readonly user: UserSession;
      readonly signal: AbortSignal;
      /** Records work that the world cannot repeat; see `callThrough`. Absent outside of episodes. */
      readonly outside?: Outside;
      /** Called with the names of the members that the score compares. For `checkEnvironment()`; absent in runs. */
      readonly onCompared?: (compared: ComparedMembers) => void;
    },
  ): Promise<World>;
}

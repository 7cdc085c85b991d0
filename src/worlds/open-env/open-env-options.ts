import type { TaskItem, TaskSplits } from "../../environment/task-list.ts";
import type { OpenEnvPlace } from "./open-env-session.ts";

/**
 * A function that computes an episode's reward from the rewards of its reset and steps. A step
 * without a reward has the entry `undefined`. The function returns `null` for an unscored episode.
 */
export type OpenEnvReward = (
  rewards: readonly (number | undefined)[],
  episode: { readonly isDone: boolean },
) => number | null;

/** A task of an OpenEnv server: the parameters of its reset. */
export interface OpenEnvTask extends TaskItem {
  /** The parameters of the reset, such as `{ seed: 7 }`. */
  readonly reset: Readonly<Record<string, unknown>>;
}

/** The options of `createOpenEnv()`: the server, and how agents use its world. */
export interface OpenEnvOptions extends OpenEnvPlace {
  /**
   * The environment's name: letters, digits, `-`, `_` and `.`. Default: the server's name for it.
   */
  readonly name?: string;
  /** The system message. Default: the server's description. */
  readonly policy?: string;
  /**
   * The tasks. Default: those that the server lists. If it lists none, seeds: 10 000 in `train`,
   * and 100 others in `test`.
   */
  readonly tasks?: TaskSplits<OpenEnvTask>;
  /**
   * Converts the agent's words to an action, for a server whose actions are words. If absent, a
   * reply in words ends the episode.
   */
  readonly say?: (text: string) => Readonly<Record<string, unknown>>;
  /**
   * Converts an observation to the text for the agent. `json` is its JSON with the server's numbers
   * and key order. Default: its text if it has one, otherwise JSON.
   */
  readonly describe?: (observation: Readonly<Record<string, unknown>>, json: string) => string;
  /**
   * Computes the episode's reward from the rewards of its steps. Default: their sum, or unscored if
   * no step has a reward.
   */
  readonly reward?: OpenEnvReward;
  /**
   * Called with a message for each tool that is left out or renamed, or whose schema has a part
   * that is not checked here. Default: a process warning.
   */
  readonly onTrouble?: (trouble: string) => void;
  /** The longest time for a reset or a step, in milliseconds. Default 60 000. */
  readonly timeoutMs?: number;
  /** The longest time for reaching the server, in milliseconds. Default 10 000. */
  readonly connectTimeoutMs?: number;
}

/** Time limits, in milliseconds. */
export interface Limits {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
}

/** The world that a task's tools act on. */
export interface ActingWorld {
  /** Performs an action and returns the text for the agent. */
  act(data: object): Promise<string>;
}

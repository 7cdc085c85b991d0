import type { TaskItem, TaskSplits } from "../../environment/task-list.ts";
import type { OpenEnvPlace } from "./open-env-session.ts";

/**
 * An episode's reward, of those of its reset and its steps; `undefined` where one had none. `null` for an
 * episode that is not scored.
 */
export type OpenEnvReward = (
  rewards: readonly (number | undefined)[],
  episode: { readonly isDone: boolean },
) => number | null;

/** A task of an OpenEnv server's: what it is reset with. */
export interface OpenEnvTask extends TaskItem {
  /** The parameters of the reset, such as `{ seed: 7 }`. */
  readonly reset: Readonly<Record<string, unknown>>;
}

/** An OpenEnv server, and how its world is played. */
export interface OpenEnvOptions extends OpenEnvPlace {
  /** Letters, digits, `-`, `_` and `.`. Default: the server's name for it. */
  readonly name?: string;
  /** What the agent is told to go by: the system message. Default: the server's description. */
  readonly policy?: string;
  /**
   * Default: those that the server lists; where it lists none, seeds: 10 000 in `train`, and 100 others in
   * `test`.
   */
  readonly tasks?: TaskSplits<OpenEnvTask>;
  /**
   * The action that is made of what the agent says, for a server whose actions are words. Absent: who says
   * something has finished.
   */
  readonly say?: (text: string) => Readonly<Record<string, unknown>>;
  /**
   * An observation as the agent reads it. `json` is its JSON with numbers and key order as the server wrote them.
   * Default: its text where it has one, else JSON.
   */
  readonly describe?: (observation: Readonly<Record<string, unknown>>, json: string) => string;
  /** The episode's reward, of those of its steps. Default: their sum; not scored where no step has one. */
  readonly reward?: OpenEnvReward;
  /**
   * Gets a line for each tool of which something is odd: one that is left out or renamed, or a schema of
   * which a part is not checked here. Default: a warning of the process.
   */
  readonly onTrouble?: (trouble: string) => void;
  /** How long a reset or a step may take, in milliseconds. Default 60 seconds. */
  readonly timeoutMs?: number;
  /** How long the server may take to be there, in milliseconds. Default 10 seconds. */
  readonly connectTimeoutMs?: number;
}

/** How long is waited for what, in milliseconds. */
export interface Limits {
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
}

/** What the tools of a task work on: the episode's own world. */
export interface ActingWorld {
  /** Performs an action and says what came of it. */
  act(data: object): Promise<string>;
}

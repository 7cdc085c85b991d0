import type { Task } from "../../task.ts";
import type { Score } from "../environment.ts";
import type { PlayedOutcome } from "../action-log.ts";
import type { ComparedMembers } from "../compared-members.ts";
import { toScore } from "../score-result.ts";
import { isObject } from "../../values/is-object.ts";
import { attributed } from "./failed-request.ts";
import type { PythonOpening } from "./python-answers.ts";
import type { PythonLease, PythonPool } from "./python-pool.ts";
import type { RequestOptions } from "./python-process.ts";

/** The time limit of requests that the caller's signal limits, in milliseconds. */
const unlimitedMs = 86_400_000;

/** The time in which an episode is closed, in milliseconds. */
const closeMs = 10_000;

/** See `Environment.open()`. */
type OnCompared = (compared: ComparedMembers) => void;

let nextEpisode = 1;

/** An episode that is open in a Python process. */
export class PythonEpisode {
  /** The environment's name and the place of its definition. */
  readonly environment: string;
  readonly #task: Task;
  readonly #lease: PythonLease;
  readonly #id: string;

  private constructor(environment: string, task: Task, lease: PythonLease) {
    this.environment = environment;
    this.#task = task;
    this.#lease = lease;
    this.#id = String(nextEpisode++);
  }

  /**
   * Opens an episode in the process with the fewest episodes.
   * @throws RolloutError
   */
  static async open(
    pool: PythonPool,
    {
      environment,
      task,
      signal,
    }: { readonly environment: string; readonly task: Task; readonly signal: AbortSignal },
  ): Promise<{ readonly episode: PythonEpisode; readonly opening: PythonOpening }> {
    const lease = await pool.lease();
    const episode = new PythonEpisode(environment, task, lease);
    try {
      const { split, index } = task;
      const opening = await attributed(
        { party: "environment", what: `Opening task ${task.id} of ${environment}` },
        async () =>
          await episode.request("open", { split, index }, { timeoutMs: unlimitedMs, signal }),
      );
      return { episode, opening: opening as PythonOpening };
    } catch (error) {
      lease[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Makes a request about this episode.
   * @throws PythonFailure
   */
  async request(
    what: string,
    given: Readonly<Record<string, unknown>>,
    options: Partial<RequestOptions>,
  ): Promise<unknown> {
    return await this.#lease.request(
      what,
      { episode: this.#id, ...given },
      { timeoutMs: unlimitedMs, ...options },
    );
  }

  /**
   * Scores the episode.
   * @throws RolloutError with the party `grader`.
   */
  async score(
    outcome: PlayedOutcome,
    {
      signal,
      onCompared,
    }: { readonly signal: AbortSignal; readonly onCompared?: OnCompared | undefined },
  ): Promise<Score> {
    const what = `score() of ${this.environment} for task ${this.#task.id}`;
    const answer = await attributed(
      { party: "grader", what },
      async () => await this.request("score", { outcome }, { signal }),
    );
    const { found, members, result } = splitFound(answer);
    return toScore(result, {
      taskId: this.#task.id,
      environment: this.environment,
      state: found,
      said: outcome.said,
      onCompared:
        onCompared && (({ wanted, state }) => onCompared({ wanted, state: members ?? state })),
    });
  }

  /** Closes the episode. A process that does not close it in time is interrupted. */
  async close(signal: AbortSignal | undefined): Promise<void> {
    try {
      await attributed(
        { party: "environment", what: `Closing task ${this.#task.id} of ${this.environment}` },
        async () => await this.request("close", {}, { timeoutMs: closeMs, signal }),
      );
    } finally {
      this.#lease[Symbol.dispose]();
    }
  }
}

/** The answer to `score`, as its parts. */
interface ScoreAnswer {
  /** The members of the state that `wanted` names. */
  readonly found: unknown;
  /** The names of the state's members. Present if the state lacks a member that `wanted` names. */
  readonly members?: readonly string[];
  /** The score, with its members renamed to those of `Score`. */
  readonly result: unknown;
}

function splitFound(answer: unknown): ScoreAnswer {
  if (answer === null) return { found: {}, result: undefined };
  if (!isObject(answer)) return { found: {}, result: answer };
  const { found = {}, state_members: members, turn_rewards: turnRewards, ...result } = answer;
  return {
    found,
    ...(Array.isArray(members) && { members: members as readonly string[] }),
    result: { ...result, ...(turnRewards !== undefined && { turnRewards }) },
  };
}

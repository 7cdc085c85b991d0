import { InvariantError } from "../../src/errors.ts";
import type { Difference } from "../../src/environment/state/difference.ts";
import type { Action, Score, Step, World } from "../../src/environment/environment.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import { pythonStr } from "../../packages/python-values/src/text/str.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { UserSession, UserUsage } from "../../src/user/user.ts";
import { readStopMarker } from "../../src/user/stop-marker.ts";
import { isLeaving, textOfLine } from "../../src/user/user.ts";
import type { MadeCall } from "./call-difference.ts";
import { ERROR_PREFIX, callTool } from "./call-tool.ts";
import { sameDatabase } from "./database-text.ts";
import { episodeDifference } from "./episode-difference.ts";
import type { GroundTruths } from "./ground-truth.ts";
import type { RewardInfo } from "./reward.ts";
import { computeReward } from "./reward.ts";
import type { Tables, TauDomain } from "./tau-domain.ts";
import type { TauTaskData } from "./tau-task.ts";
import { RESPOND_ACTION } from "./tau-task.ts";

/** The parts of one episode's world. */
interface TauWorldOptions<Database extends Tables> {
  readonly domain: TauDomain<Database>;
  /** This episode's own view of the data. */
  readonly database: Database;
  readonly terminatingTools: ReadonlySet<string>;
  readonly task: TauTaskData;
  readonly groundTruths: GroundTruths<Database>;
  readonly user: UserSession;
}

/**
 * One episode of τ-bench.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/base.py (`Env`). If the original raises from `step()` (a
 * `respond` without content, a tool that returns `None`), the agent gets an error here and the episode continues.
 * No step may follow the last one.
 */
export class TauWorld<Database extends Tables> implements World {
  readonly #options: TauWorldOptions<Database>;
  readonly #said: PyValue[] = [];
  readonly #made: MadeCall[] = [];
  #state: "new" | "running" | "done" | "scored" = "new";

  constructor(options: TauWorldOptions<Database>) {
    this.#options = options;
  }

  /** A stop marker in the opening line does not end the episode. */
  async begin({ signal }: { signal: AbortSignal }): Promise<string> {
    if (this.#state !== "new") {
      throw new InvariantError("Cannot begin: the episode has begun already");
    }
    signal.throwIfAborted();
    this.#state = "running";
    return await this.#options.user.begin({ signal });
  }

  async step(action: Action, { signal }: { signal: AbortSignal }): Promise<Step> {
    if (this.#state !== "running") {
      throw new InvariantError(
        `Cannot step: the episode is ${this.#state}, expected one that is running`,
      );
    }
    signal.throwIfAborted();
    const step = await this.#perform(action, signal);
    if (step.done !== undefined) this.#state = "done";
    return step;
  }

  async score({ signal }: { signal: AbortSignal }): Promise<Score> {
    if (this.#state === "scored") {
      throw new InvariantError("Cannot score: the episode is scored already");
    }
    signal.throwIfAborted();
    const isDone = this.#state === "done";
    this.#state = "scored";
    try {
      const difference = this.#difference();
      if (isDone) {
        const info = await this.#reward();
        return { reward: info.reward, details: { ...info, difference } };
      }
      const why = "τ-bench rewards only episodes that the user or a terminating tool has ended";
      return { reward: 0, details: { done: false, why, difference } };
    } catch (error) {
      // The original's benchmark run scores an episode as 0 if its scoring raises.
      if (!(error instanceof PythonError)) throw error;
      return { reward: 0, details: { error: error.message, exception: error.exception } };
    }
  }

  userUsage(): UserUsage {
    return this.#options.user.usage();
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  #perform(action: Action, signal: AbortSignal): Promise<Step> | Step {
    if (action.type === "say") return this.#say(action.content, signal);
    if (action.name === RESPOND_ACTION) return this.#respond(action.arguments, signal);
    return this.#call(action.name, action.arguments);
  }

  async #say(content: PyValue, signal: AbortSignal): Promise<Step> {
    const line = await this.#options.user.reply(pythonStr(content), { signal });
    this.#said.push(content);
    const observation = textOfLine(line);
    const step = { observation, from: "user", source: "user" } as const;
    // As in the original, a user who writes the marker leaves, in any context.
    const isOver = isLeaving(line) || isLeaving(readStopMarker(observation, []));
    return isOver ? { ...step, done: "user-left" } : step;
  }

  #respond(given: PyDict, signal: AbortSignal): Promise<Step> | Step {
    const content = given.get("content");
    if (content !== undefined) return this.#say(content, signal);
    return {
      observation: `${ERROR_PREFIX}'content'`,
      from: "tool",
      source: RESPOND_ACTION,
      isError: true,
    };
  }

  #call(name: string, given: PyDict): Step {
    const { domain, database, terminatingTools } = this.#options;
    const outcome = callTool(domain, database, { name, arguments: given });
    if (outcome === undefined) {
      return { observation: `Unknown action ${name}`, from: "tool", source: name, isError: true };
    }
    const observation = outcome.observation ?? `${ERROR_PREFIX}${name} returned None`;
    const isError = observation.startsWith(ERROR_PREFIX);
    this.#made.push({ name, arguments: given, ...(isError && { error: observation }) });
    return {
      observation,
      from: "tool",
      source: name,
      ...(isError && { isError }),
      ...(terminatingTools.has(name) && { done: "terminal-tool" as const }),
    };
  }

  #difference(): Difference {
    const { task, groundTruths, database, terminatingTools } = this.#options;
    return episodeDifference({
      task,
      reached: database,
      wanted: groundTruths.of(task).database,
      made: this.#made,
      said: this.#said,
      terminatingTools,
    });
  }

  #reward(): Promise<RewardInfo> {
    const { task, groundTruths, database } = this.#options;
    const wanted = groundTruths.of(task);
    return computeReward({
      task,
      isStateRight: sameDatabase(database, wanted.database),
      said: this.#said,
      wantedHash: () => wanted.hash(),
    });
  }
}

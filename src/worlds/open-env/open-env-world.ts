import { InvariantError, RolloutError, assertInvariant } from "../../errors.ts";
import type { Tool } from "../../environment/define-tool.ts";
import type { Action, Score, Step, World } from "../../environment/environment.ts";
import { EpisodeResources } from "../../environment/episode-resources.ts";
import { isRefusal, refuse } from "../../environment/refuse.ts";
import { callDefinedTool } from "../../environment/tool-call.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import { callThrough } from "../../outside.ts";
import type { Task } from "../../task.ts";
import type { UserSession } from "../../user/user.ts";
import type { ActingWorld, Limits, OpenEnvOptions, OpenEnvTask } from "./open-env-options.ts";
import { describeObservation } from "./open-env-observation.ts";
import { OpenEnvSession, RefusedAction, type OpenEnvResult } from "./open-env-session.ts";
import { writeExactJson } from "../../json/exact-json.ts";

/** The parts that a world on an OpenEnv server needs. */
interface OpenEnvWorldParts {
  readonly options: OpenEnvOptions;
  readonly limits: Limits;
  readonly task: Task<OpenEnvTask>;
  readonly tools: readonly Tool<ActingWorld>[];
  readonly user: UserSession;
}

/** One attempt at a task. Opens its session with the server when the conversation starts. */
export class OpenEnvWorld implements World {
  readonly #parts: OpenEnvWorldParts;
  readonly #tools: ReadonlyMap<string, Tool<ActingWorld>>;
  readonly #resources = new EpisodeResources();
  /** The rewards of the reset and of each step so far. */
  readonly #rewards: (number | undefined)[] = [];
  #session: OpenEnvSession | undefined;
  #isDone = false;
  /** True once the server has reported the end. */
  #isDoneThere = false;

  constructor(parts: OpenEnvWorldParts) {
    this.#parts = parts;
    this.#tools = new Map(parts.tools.map((tool) => [tool.name, tool]));
  }

  async begin({ signal }: { signal: AbortSignal }): Promise<string> {
    const { options, limits, task } = this.#parts;
    const { timeoutMs, connectTimeoutMs } = limits;
    this.#session = await OpenEnvSession.open(options, { timeoutMs: connectTimeoutMs, signal });
    const result = await this.#session.reset(task.data.reset, { timeoutMs, signal });
    const observation = this.#take(result);
    if (this.#isDone) {
      throw new RolloutError(
        "environment/bad-step",
        `Cannot play task ${task.id}: OpenEnv server ${shownUrl(options.url)} says at the reset that the episode is ` +
          "done, expected an episode that begins",
      );
    }
    return observation === "" || observation === "{}" ? task.instruction : observation;
  }

  async step(action: Action, { signal }: { signal: AbortSignal }): Promise<Step> {
    const { id } = this.#parts.task;
    if (this.#session === undefined) {
      throw new InvariantError(`Cannot step task ${id}: it was not begun`);
    }
    if (this.#isDone) throw new InvariantError(`Cannot step task ${id}: it is done`);
    return action.type === "say"
      ? await this.#say(action.content, signal)
      : await this.#call(action, signal);
  }

  async #say(content: string, signal: AbortSignal): Promise<Step> {
    const { say } = this.#parts.options;
    const from = { from: "user", source: "user" } as const;
    if (say === undefined) {
      this.#isDone = true;
      return { observation: "", ...from, done: "finished" };
    }
    try {
      const observation = await this.#act(say(content), signal);
      return { observation, ...from, ...this.#end() };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      return { observation: `Error: ${error.message}`, ...from, isError: true, ...this.#end() };
    }
  }

  async #call({ name, arguments: given }: Extract<Action, { type: "call" }>, signal: AbortSignal) {
    const from = { from: "tool", source: name } as const;
    const tool = this.#tools.get(name);
    if (tool === undefined) {
      const known = [...this.#tools.keys()].join(", ");
      return { observation: `Error: no tool ${name}, there are ${known}`, ...from, isError: true };
    }
    const { task } = this.#parts;
    const place = {
      taskId: task.id,
      environment: task.environment,
      signal,
      outside: callThrough,
      resource: this.#resources.get,
    };
    const state: ActingWorld = { act: async (data) => await this.#act(data, signal) };
    const { text, isError } = await callDefinedTool(tool.callable, { given, state }, place);
    return { observation: text, ...from, ...(isError && { isError }), ...this.#end() };
  }

  async #act(data: object, signal: AbortSignal): Promise<string> {
    const { limits } = this.#parts;
    const session = this.#session;
    assertInvariant(session !== undefined, "who steps has begun");
    let result: OpenEnvResult;
    try {
      result = await session.step(data, { timeoutMs: limits.timeoutMs, signal });
    } catch (error) {
      if (error instanceof RefusedAction) refuse(error.message);
      throw error;
    }
    return this.#take(result);
  }

  #take({ observation, reward, done = false }: OpenEnvResult): string {
    this.#rewards.push(reward === undefined || reward === null ? undefined : Number(reward));
    this.#isDone = done;
    this.#isDoneThere = done;
    const { describe } = this.#parts.options;
    if (describe === undefined) return describeObservation(observation);
    return describe(observation, writeExactJson(observation));
  }

  #end(): { readonly done?: "finished" } {
    return this.#isDone ? { done: "finished" } : {};
  }

  /** Computes the reward. An attempt without a reward for any step is unscored. */
  async score(): Promise<Score> {
    const { options, task } = this.#parts;
    const rewards = this.#rewards.map((one) => one ?? null);
    const details = { rewards, isDone: this.#isDone };
    if (options.reward !== undefined) {
      return { reward: options.reward(this.#rewards, { isDone: this.#isDone }), details };
    }
    // The reward of the reset does not count: servers write 0 there.
    const isScored = this.#rewards.slice(1).some((reward) => reward !== undefined);
    if (!isScored && this.#isDoneThere) {
      throw new RolloutError(
        "grader/bad-score",
        `Cannot score task ${task.id}: OpenEnv server ${shownUrl(options.url)} gave no reward for any step, ` +
          "expected one, or a function reward() in the options",
      );
    }
    const sum = rewards.reduce<number>((total, reward) => total + (reward ?? 0), 0);
    return { reward: isScored ? sum : null, details };
  }

  userUsage(): ReturnType<UserSession["usage"]> {
    return this.#parts.user.usage();
  }

  async [Symbol.asyncDispose]({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const first = async () => await this.#session?.[Symbol.asyncDispose]();
    await this.#resources.free({ first, signal });
  }
}

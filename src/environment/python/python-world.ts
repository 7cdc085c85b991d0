import { InvariantError, assertInvariant } from "../../errors.ts";
import { callThrough } from "../../outside.ts";
import type { ToolDefinition } from "../../message.ts";
import type { Task } from "../../task.ts";
import { isLeaving, textOfLine, type UserSession } from "../../user/user.ts";
import type { Tool } from "../define-tool.ts";
import type { Action, Score, Step, World } from "../environment.ts";
import { EpisodeResources } from "../episode-resources.ts";
import { callDefinedTool, noSuchTool } from "../tool-call.ts";
import { attributed } from "./failed-request.ts";
import { PlayedActions } from "../played-actions.ts";
import type { PythonCallAnswer } from "./python-answers.ts";
import type { PythonEpisode } from "./python-episode.ts";
import type { PythonCalls } from "./python-tools.ts";

/** One attempt at a task of an environment with tools in Python. */
export class PythonWorld implements World {
  readonly policyText?: string;
  readonly tools?: readonly ToolDefinition[];
  readonly #episode: PythonEpisode;
  readonly #task: Task;
  readonly #user: UserSession;
  readonly #tools: ReadonlyMap<string, Tool<PythonCalls>>;
  readonly #played = new PlayedActions();
  readonly #resources = new EpisodeResources();
  #isDone = false;
  /** True once the environment has said that the episode is over. */
  #isFinished = false;

  constructor(parts: {
    readonly episode: PythonEpisode;
    readonly task: Task;
    readonly user: UserSession;
    readonly tools: ReadonlyMap<string, Tool<PythonCalls>>;
    readonly policyText: string | undefined;
  }) {
    this.#episode = parts.episode;
    this.#task = parts.task;
    this.#user = parts.user;
    this.#tools = parts.tools;
    if (parts.policyText !== undefined) this.policyText = parts.policyText;
  }

  async begin(options: { signal: AbortSignal }): Promise<string> {
    return await this.#user.begin(options);
  }

  async step(action: Action, { signal }: { signal: AbortSignal }): Promise<Step> {
    if (this.#isDone) throw new InvariantError(`Cannot step task ${this.#task.id}: it is done`);
    const step =
      action.type === "say"
        ? await this.#say(action.content, signal)
        : await this.#call(action, signal);
    this.#isDone = step.done !== undefined;
    return step;
  }

  async #say(content: string, signal: AbortSignal): Promise<Step> {
    this.#played.say(content);
    const line = await this.#user.reply(content, { signal });
    const step = { observation: textOfLine(line), from: "user", source: "user" } as const;
    return isLeaving(line) ? { ...step, done: "user-left" } : step;
  }

  async #call(action: Extract<Action, { type: "call" }>, signal: AbortSignal): Promise<Step> {
    const { name, arguments: given } = action;
    const tool = this.#tools.get(name);
    const place = {
      taskId: this.#task.id,
      environment: this.#episode.environment,
      signal,
      outside: callThrough,
      resource: this.#resources.get,
    };
    const state: PythonCalls = {
      call: async (called, written, options) => {
        const answer = await attributed(
          {
            party: "environment",
            what: `Tool ${called} of ${this.#episode.environment} in task ${this.#task.id}`,
            hint: " (refuse(…) reports a mistake to the model; any other error fails the episode)",
          },
          async () => await this.#episode.request("call", { name: called, arguments: written }, options),
        );
        const { done } = answer as PythonCallAnswer;
        this.#isFinished = done === true;
        return answer as PythonCallAnswer;
      },
    };
    const { text, isError, ends } =
      tool === undefined
        ? noSuchTool(name, this.#tools)
        : await callDefinedTool(tool.callable, { given, state }, place);
    this.#played.call({ name, given, isError });
    return {
      observation: text,
      from: "tool",
      source: name,
      ...(isError && { isError }),
      ...(ends ? { done: "terminal-tool" } : this.#isFinished ? { done: "finished" } : {}),
    };
  }

  async score({ signal, actionCounts }: Parameters<World["score"]>[0]): Promise<Score> {
    assertInvariant(this.#episode !== undefined, "a world that is scored is open");
    return await this.#episode.score(this.#played.outcome(actionCounts, this.#isDone), signal);
  }

  userUsage(): ReturnType<UserSession["usage"]> {
    return this.#user.usage();
  }

  async [Symbol.asyncDispose](options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#episode.close(options.signal);
  }
}

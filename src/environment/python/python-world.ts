import { InvariantError } from "../../errors.ts";
import { writeCompactJson } from "../../json/exact-json.ts";
import type { ToolDefinition } from "../../message.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import type { Task } from "../../task.ts";
import type { UserSession } from "../../user/user.ts";
import type { Action, Score, Step, World } from "../environment.ts";
import { findMistake, noSuchTool, refusedCall, type ToolOutcome } from "../tool-call.ts";
import { attributed } from "./failed-request.ts";
import { ActionLog } from "../action-log.ts";
import { sayToUser, stepOfCall } from "../world-step.ts";
import type { PythonCallAnswer } from "./python-answers.ts";
import type { PythonEpisode } from "./python-episode.ts";
import type { ComparedMembers } from "../compared-members.ts";
import type { PythonToolCall } from "./python-tools.ts";

/** One attempt at a task of an environment with tools in Python. */
export class PythonWorld implements World {
  readonly policyText?: string;
  readonly tools?: readonly ToolDefinition[];
  readonly #episode: PythonEpisode;
  readonly #task: Task;
  readonly #user: UserSession;
  readonly #tools: ReadonlyMap<string, PythonToolCall>;
  readonly #onCompared: ((compared: ComparedMembers) => void) | undefined;
  readonly #played = new ActionLog();
  #isDone = false;

  constructor(parts: {
    readonly episode: PythonEpisode;
    readonly task: Task;
    readonly user: UserSession;
    readonly tools: ReadonlyMap<string, PythonToolCall>;
    readonly policyText: string | undefined;
    readonly onCompared: ((compared: ComparedMembers) => void) | undefined;
  }) {
    this.#episode = parts.episode;
    this.#task = parts.task;
    this.#user = parts.user;
    this.#tools = parts.tools;
    this.#onCompared = parts.onCompared;
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
    return await sayToUser(this.#user, content, signal);
  }

  async #call(action: Extract<Action, { type: "call" }>, signal: AbortSignal): Promise<Step> {
    const { name, arguments: given } = action;
    const tool = this.#tools.get(name);
    const { outcome, isDone } =
      tool === undefined
        ? { outcome: noSuchTool(name, this.#tools), isDone: false }
        : await this.#perform(tool.callable, given, signal);
    this.#played.call({ name, given, isError: outcome.isError });
    return stepOfCall(name, outcome, isDone);
  }

  async #perform(
    tool: PythonToolCall["callable"],
    given: PyDict,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: ToolOutcome; readonly isDone: boolean }> {
    const mistake = await findMistake(tool, given);
    if (mistake !== undefined) return { outcome: mistake, isDone: false };
    const { name, timeoutMs } = tool;
    const writtenArguments = writeCompactJson(given);
    const place = {
      party: "environment",
      what: `Tool ${name} of ${this.#episode.environment} in task ${this.#task.id}`,
      hint: " (refuse(…) reports a mistake to the model; any other error fails the episode)",
    } as const;
    const answer = (await attributed(place, () =>
      this.#episode.request("call", { name }, { timeoutMs, signal, writtenArguments }),
    )) as PythonCallAnswer;
    const { text, isError = false, ends = false, done = false } = answer;
    const outcome = isError ? refusedCall(text) : { text, isError };
    return { outcome: { ...outcome, ends }, isDone: done };
  }

  async score({ signal, actionCounts }: Parameters<World["score"]>[0]): Promise<Score> {
    const outcome = this.#played.outcome(actionCounts, this.#isDone);
    return await this.#episode.score(outcome, { signal, onCompared: this.#onCompared });
  }

  userUsage(): ReturnType<UserSession["usage"]> {
    return this.#user.usage();
  }

  async [Symbol.asyncDispose](options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#episode.close(options.signal);
  }
}

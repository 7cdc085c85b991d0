import { createHash } from "node:crypto";
import { InvariantError, RolloutError, describeError, isOwnBug } from "../errors.ts";
import type { ToolDefinition } from "../message.ts";
import { PlaybackStop, type Outside } from "../outside.ts";
import type { Task } from "../task.ts";
import type { UserSession } from "../user/user.ts";
import type { Tool } from "./define-tool.ts";
import type { Action, Score, Step, World } from "./environment.ts";
import type { EpisodeResources, GetResource } from "./episode-resources.ts";
import type { EpisodeState } from "./state/episode-state.ts";
import { binaryText } from "./binary.ts";
import { writeJsonWith } from "./plain-text.ts";
import type { ComparedMembers } from "./compared-members.ts";
import { toScore, type ScoreResult } from "./score-result.ts";
import { ActionLog, type PlayedOutcome } from "./action-log.ts";
import { placeOfThrow } from "../text/source-place.ts";
import { callDefinedTool, noSuchTool, type ToolOutcome } from "./tool-call.ts";
import { sayToUser, stepOfCall } from "./world-step.ts";

/** The third argument of `score()`: the facts about the episode beside its state and task. */
export interface PlayedEpisode<State> extends PlayedOutcome {
  /** The initial state. Frozen, except binary data, which is a copy. */
  readonly initial: State;
  readonly signal: AbortSignal;
  /** Records work that a score cannot repeat, such as a judge's answer: see `ToolContext`. */
  readonly outside: Outside;
  /** Returns the resource that the episode's tools opened under a key, or opens one: see `ToolContext`. */
  readonly resource: GetResource;
}

/** The arguments that open a world. */
interface WorldParts<Item, State> {
  /** The environment's name, and the place of its definition. */
  readonly environment: string;
  readonly task: Task<Item>;
  readonly user: UserSession;
  readonly state: EpisodeState<State>;
  readonly tools: ReadonlyMap<string, Tool<State>>;
  readonly isDone: ((state: State, item: Item) => boolean) | undefined;
  readonly score: (
    state: State,
    item: Item,
    episode: PlayedEpisode<State>,
  ) => ScoreResult<State> | Promise<ScoreResult<State>>;
  readonly dispose: ((state: State, item: Item) => unknown) | undefined;
  readonly outside: Outside;
  readonly onCompared: ((compared: ComparedMembers) => void) | undefined;
  /** The resources that the episode opens outside of its state; the world disposes of them. */
  readonly resources: EpisodeResources;
  /** The tools and policy text of this task, if they differ from the environment's. */
  readonly own: { readonly tools?: readonly ToolDefinition[]; readonly policyText?: string };
}

/** One attempt at a task of a defined environment. */
export class DefinedWorld<Item, State> implements World {
  readonly tools?: readonly ToolDefinition[];
  readonly policyText?: string;
  readonly #parts: WorldParts<Item, State>;
  readonly #played = new ActionLog();
  #isDone = false;

  constructor(parts: WorldParts<Item, State>) {
    this.#parts = parts;
    if (parts.own.tools !== undefined) this.tools = parts.own.tools;
    if (parts.own.policyText !== undefined) this.policyText = parts.own.policyText;
  }

  async begin(options: { signal: AbortSignal }): Promise<string> {
    return await this.#parts.user.begin(options);
  }

  async step(action: Action, { signal }: { signal: AbortSignal }): Promise<Step> {
    const { task } = this.#parts;
    if (this.#isDone) throw new InvariantError(`Cannot step task ${task.id}: it is done`);
    const step =
      action.type === "say"
        ? await this.#say(action.content, signal)
        : await this.#call(action, signal);
    this.#isDone = step.done !== undefined;
    return step;
  }

  async #say(content: string, signal: AbortSignal): Promise<Step> {
    this.#played.say(content);
    return await sayToUser(this.#parts.user, content, signal);
  }

  async #call(action: Extract<Action, { type: "call" }>, signal: AbortSignal): Promise<Step> {
    const { name, arguments: given } = action;
    const { environment, state, tools, task, outside, resources } = this.#parts;
    const tool = tools.get(name);
    const place = { taskId: task.id, environment, signal, outside, resource: resources.get };
    const outcome: ToolOutcome =
      tool === undefined
        ? noSuchTool(name, tools)
        : await state.change(
            async (draft) => await callDefinedTool(tool.callable, { given, state: draft }, place),
            ({ isError }) => !isError,
          );
    this.#played.call({ name, given, isError: outcome.isError });
    return stepOfCall(name, outcome, !outcome.ends && this.#isFinished());
  }

  #isFinished(): boolean {
    const { environment, isDone, state, task } = this.#parts;
    if (isDone === undefined) return false;
    const place = `isDone() of ${environment}`;
    const answer = foreign(place, task, () => isDone(state.view, task.data)) as unknown;
    if (typeof answer === "boolean") return answer;
    throw new RolloutError(
      "environment/bad-step",
      `Cannot use the result of ${place} for task ${task.id}: ${describeKind(answer)}, expected true or false`,
    );
  }

  async score({ signal, actionCounts }: Parameters<World["score"]>[0]): Promise<Score> {
    const { environment, onCompared, score, state, task, outside, resources } = this.#parts;
    const reached = state.close();
    const result = await foreignAsync(
      `score() of ${environment}`,
      task,
      async () =>
        await score(reached, task.data, {
          get initial() {
            return state.initial;
          },
          ...this.#played.outcome(actionCounts, this.#isDone),
          signal,
          outside,
          resource: resources.get,
        }),
      "grader",
    );
    return toScore(result, {
      taskId: task.id,
      environment,
      state: reached,
      said: this.#played.said,
      onCompared,
    });
  }

  userUsage(): ReturnType<UserSession["usage"]> {
    return this.#parts.user.usage();
  }

  async stateHash(): Promise<string> {
    const plain = writeJsonWith(this.#parts.state.view, binaryText);
    return createHash("sha256").update(plain).digest("hex");
  }

  async [Symbol.asyncDispose]({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const { dispose, environment, resources, state, task } = this.#parts;
    const place = `dispose() of ${environment}`;
    const first =
      dispose &&
      (async () =>
        await foreignAsync(
          place,
          task,
          async () => await dispose(state.view, task.data),
          "environment",
        ));
    await resources.free({ first, signal });
  }
}

/** Calls a function of the environment's author; errors name the function and the task. */
export function foreign<Result>(place: string, task: Task, work: () => Result): Result {
  try {
    const result = work();
    // A promise is not a valid answer and is reported at once; its own rejection is ignored.
    if (result instanceof Promise) result.catch(() => {});
    return result;
  } catch (error) {
    throw attributed(error, { place, task, party: "environment" });
  }
}

/** Same as `foreign()`, for functions that may be async. */
export async function foreignAsync<Result>(
  place: string,
  task: Task,
  work: () => Promise<Result>,
  party: "environment" | "grader",
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw attributed(error, { place, task, party });
  }
}

function attributed(
  error: unknown,
  {
    place,
    task,
    party,
  }: {
    readonly place: string;
    readonly task: Task;
    readonly party: "environment" | "grader";
  },
): unknown {
  if (error instanceof RolloutError || isOwnBug(error)) return error;
  if (error instanceof PlaybackStop) return error;
  const line = placeOfThrow(error);
  const where = line === undefined ? "" : ` at ${line}`;
  const isFrozen =
    error instanceof TypeError && /read only|not extensible|frozen/.test(error.message);
  const hint = isFrozen ? " (the state is only changed by tools; copy what you change)" : "";
  return new RolloutError(
    `${party}/exception`,
    `${place} threw for task ${task.id}${where}: ${describeError(error)}${hint}`,
    { cause: error },
  );
}

function describeKind(value: unknown): string {
  if (value === undefined) return "nothing (a forgotten return?)";
  return value instanceof Promise ? "a promise" : typeof value;
}

import type { Action, Step, World } from "../../environment/environment.ts";
import { crossBoundary } from "../../episode/boundary.ts";
import type { CallWatch } from "../../episode/turn/call-watch.ts";
import { checkStep } from "../../episode/check/check-foreign.ts";
import { describe } from "../../episode/check/foreign-value.ts";
import type { UserCallTracker } from "../../episode/turn/user-call-tracker.ts";
import type { EpisodeLimits } from "../../episode/limits.ts";
import { RolloutError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { ToolDefinition } from "../../message.ts";
import { exactOf } from "../../json/exact-json.ts";
import { toPlainJson, type PyDict } from "../../../packages/python-values/src/value.ts";
import type { Task } from "../../task.ts";
import { ClientError } from "../client-error.ts";
import type { ForeignTool } from "./foreign-agent.ts";

/** The description of the attempt's task. */
interface TaskDescription {
  readonly task: Task;
  readonly policyText: string;
  readonly firstUserText: string;
  readonly tools: readonly ToolDefinition[];
}

/** The result of a tool call or of a message to the user. */
interface ActionResult {
  readonly observation: string;
  /** True if the tool reports a mistake and changed nothing. */
  readonly isError?: boolean;
  /** True if the conversation is over. */
  readonly isDone: boolean;
}

/**
 * The endpoint through which an agent reaches its task's tools and user, directly or over HTTP.
 * Actions run one at a time, with the time limits of the built-in agents.
 */
export class TaskEndpoint {
  /** The reason why the world is done. Absent while the world continues. */
  done: Step["done"];
  /** A failure of the world or the user, after which every action fails. */
  failure: RolloutError | undefined;
  readonly description: TaskDescription;
  readonly #world: World;
  readonly #watch: CallWatch;
  readonly #userCalls: Pick<UserCallTracker, "watchCall">;
  readonly #limits: Pick<EpisodeLimits, "toolTimeoutMs" | "userTimeoutMs">;
  readonly #redactor: Pick<Redactor, "thrown" | "without"> | undefined;
  readonly #onDone: () => void;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** @param open - `watch` belongs to the endpoint alone. */
  constructor(
    description: TaskDescription,
    open: {
      readonly world: World;
      readonly watch: CallWatch;
      readonly userCalls: Pick<UserCallTracker, "watchCall">;
      readonly limits: Pick<EpisodeLimits, "toolTimeoutMs" | "userTimeoutMs">;
      /** Called once when the world is done, before the agent gets the answer. */
      readonly onDone: () => void;
      /** Removes secrets from text for the agent. Default: no secrets are known. */
      readonly redactor?: Pick<Redactor, "thrown" | "without">;
    },
  ) {
    this.description = description;
    this.#world = open.world;
    this.#watch = open.watch;
    this.#userCalls = open.userCalls;
    this.#limits = open.limits;
    this.#redactor = open.redactor;
    this.#onDone = open.onDone;
  }

  /** The tools for an agent in this process. */
  get tools(): readonly ForeignTool[] {
    return this.description.tools.map((tool) => {
      const { description, parameters } = describeTool(tool);
      return {
        name: tool.name,
        description,
        parameters,
        execute: async (given) => (await this.call(tool.name, given)).observation,
      };
    });
  }

  /** Refuses further actions and resolves when the current one has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  /**
   * Calls a tool.
   *
   * @throws ClientError for an unknown tool, or arguments that are not an object.
   */
  async call(name: string, given: unknown = {}): Promise<ActionResult> {
    if (!this.description.tools.some((tool) => tool.name === name)) {
      throw new ClientError("not-found", `There is no tool ${name}`);
    }
    const value = given ?? {};
    if (typeof value !== "object" || Array.isArray(value)) {
      throw new ClientError("invalid", `Cannot call ${name}: expected an object as its arguments`);
    }
    const callArguments = exactOf(value) as PyDict;
    return await this.#step({ type: "call", name, arguments: callArguments });
  }

  /**
   * Sends a message to the user.
   *
   * @returns the answer, or `undefined` if the conversation is over.
   * @throws ClientError if the content is not text.
   */
  async say(content: string): Promise<string | undefined> {
    const text: unknown = content;
    if (typeof text !== "string") {
      throw new ClientError("invalid", `Cannot say ${describe(text)}: expected text`);
    }
    const { observation, isDone } = await this.#step({ type: "say", content });
    return isDone ? undefined : observation;
  }

  async #step(action: Action): Promise<ActionResult> {
    const before = this.#last;
    const work = (async (): Promise<ActionResult> => {
      await before;
      if (this.done !== undefined || this.#isClosed) return over;
      if (this.failure !== undefined) throw this.failure;
      try {
        const { observation, isError, done } = this.#clean(await this.#perform(action));
        this.done = done;
        if (done !== undefined) this.#onDone();
        const answer = { observation, isDone: done !== undefined };
        return isError === undefined ? answer : { ...answer, isError };
      } catch (thrown) {
        const error = this.#redactor === undefined ? thrown : this.#redactor.thrown(thrown);
        if (error instanceof RolloutError) this.failure = error;
        // The agent has ended, so that an unawaited promise must not reject.
        if (this.#isClosed) return over;
        throw error;
      }
    })();
    this.#last = work.catch(() => {});
    return await work;
  }

  #clean(step: Step): Step {
    return this.#redactor === undefined ? step : this.#redactor.without(step);
  }

  async #perform(action: Action): Promise<Step> {
    const { id, environment } = this.description.task;
    const { toolTimeoutMs, userTimeoutMs } = this.#limits;
    const isSaid = action.type === "say";
    const what = isSaid
      ? `pass on what the agent said in task ${id}`
      : `call tool ${action.name} in task ${id}`;
    return await crossBoundary(
      this.#watch,
      {
        party: "environment",
        what,
        waitsFor: this.#userCalls.watchCall(this.#watch),
        timeoutMs: isSaid ? userTimeoutMs : toolTimeoutMs,
      },
      async (signal) =>
        checkStep(
          await this.#world.step(action, { signal }),
          `world.step() in task ${id} of ${environment}`,
        ),
    );
  }
}

const over: ActionResult = {
  observation: "Error: the conversation is over",
  isError: true,
  isDone: true,
};

/** Returns a tool's description and schema as JSON. */
function describeTool({ openai }: ToolDefinition): Pick<ForeignTool, "description" | "parameters"> {
  const body = openai.get("function") as PyDict;
  const description = body.get("description");
  const parameters = toPlainJson(body.get("parameters") ?? new Map());
  return {
    description: typeof description === "string" ? description : "",
    parameters: JSON.parse(JSON.stringify(parameters)) as ForeignTool["parameters"],
  };
}

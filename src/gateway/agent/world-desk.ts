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
import { exactOf } from "../../python/json/exact-json.ts";
import { toPlainJson, type PyDict } from "../../python/value.ts";
import type { Task } from "../../task.ts";
import { ClientError } from "../client-error.ts";
import type { ForeignTool } from "./foreign-agent.ts";

/** What an agent finds at its desk: the task, and how it begins. */
interface DeskTask {
  readonly task: Task;
  readonly policyText: string;
  readonly firstUserText: string;
  readonly tools: readonly ToolDefinition[];
}

/** What a call or words brought. */
interface DeskAnswer {
  readonly observation: string;
  /** Whether the tool changed nothing and reports a mistake. */
  readonly isError?: boolean;
  /** Whether the conversation is over. */
  readonly isDone: boolean;
}

/**
 * The world as an agent in its own process or in another sees it: one thing is done at a time, within the
 * limits that hold for the built-in agents.
 */
export class WorldDesk {
  /** Why the world is done; absent while it goes on. */
  done: Step["done"];
  /** What the world or the user did not do. Nothing more is done then. */
  failure: RolloutError | undefined;
  readonly about: DeskTask;
  readonly #world: World;
  readonly #watch: CallWatch;
  readonly #hearing: Pick<UserCallTracker, "watchCall">;
  readonly #limits: Pick<EpisodeLimits, "toolTimeoutMs" | "userTimeoutMs">;
  readonly #redactor: Pick<Redactor, "thrown" | "without"> | undefined;
  readonly #onDone: () => void;
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** @param open - `watch` is the desk's own. */
  constructor(
    about: DeskTask,
    open: {
      readonly world: World;
      readonly watch: CallWatch;
      readonly hearing: Pick<UserCallTracker, "watchCall">;
      readonly limits: Pick<EpisodeLimits, "toolTimeoutMs" | "userTimeoutMs">;
      /** Told once, before the agent hears of it, that the world is done. */
      readonly onDone: () => void;
      /** Takes secrets out of what the agent hears. Default: none are known. */
      readonly redactor?: Pick<Redactor, "thrown" | "without">;
    },
  ) {
    this.about = about;
    this.#world = open.world;
    this.#watch = open.watch;
    this.#hearing = open.hearing;
    this.#limits = open.limits;
    this.#redactor = open.redactor;
    this.#onDone = open.onDone;
  }

  /** The tools, as an agent in this process takes them. */
  get tools(): readonly ForeignTool[] {
    return this.about.tools.map((tool) => {
      const { description, parameters } = describeTool(tool);
      return {
        name: tool.name,
        description,
        parameters,
        execute: async (given) => (await this.call(tool.name, given)).observation,
      };
    });
  }

  /** Nothing is done any more; resolves when what is being done has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#last;
  }

  /** @throws ClientError for a tool that there is not, or arguments that are no object. */
  async call(name: string, given: unknown = {}): Promise<DeskAnswer> {
    if (!this.about.tools.some((tool) => tool.name === name)) {
      throw new ClientError("not-found", `There is no tool ${name}`);
    }
    const value = given ?? {};
    if (typeof value !== "object" || Array.isArray(value)) {
      throw new ClientError("invalid", `Cannot call ${name}: expected its arguments as an object`);
    }
    const taken = exactOf(value) as PyDict;
    return await this.#step({ type: "call", name, arguments: taken });
  }

  /**
   * The user's answer; `undefined` where the conversation is over.
   *
   * @throws ClientError for what is no text.
   */
  async say(content: string): Promise<string | undefined> {
    const said: unknown = content;
    if (typeof said !== "string") {
      throw new ClientError("invalid", `Cannot say ${describe(said)}: expected a text`);
    }
    const { observation, isDone } = await this.#step({ type: "say", content });
    return isDone ? undefined : observation;
  }

  async #step(action: Action): Promise<DeskAnswer> {
    const before = this.#last;
    const work = (async (): Promise<DeskAnswer> => {
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
        // The agent has ended, and whoever forgot to await the answer is not to be thrown anything.
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
    const { id, environment } = this.about.task;
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
        waitsFor: this.#hearing.watchCall(this.#watch),
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

const over: DeskAnswer = {
  observation: "Error: the conversation is over",
  isError: true,
  isDone: true,
};

/** A tool's description and schema, as JSON. */
function describeTool({ openai }: ToolDefinition): Pick<ForeignTool, "description" | "parameters"> {
  const body = openai.get("function") as PyDict;
  const description = body.get("description");
  const parameters = toPlainJson(body.get("parameters") ?? new Map());
  return {
    description: typeof description === "string" ? description : "",
    parameters: JSON.parse(JSON.stringify(parameters)) as ForeignTool["parameters"],
  };
}

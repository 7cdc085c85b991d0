import { z } from "zod";
import type { Action, Environment, Step } from "../../environment/environment.ts";
import { JudgedWorld } from "../../episode/judged-world.ts";
import { UsageError } from "../../errors.ts";
import type { Clock } from "../../async/clock.ts";
import { toolParameters, type ToolDefinition } from "../../message.ts";
import { WrittenJson, exactOf, writeCompactJson } from "../../json/exact-json.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";
import type { Task } from "../../task.ts";
import type { User } from "../../user/user.ts";
import type { OpenEnvResult } from "./open-env-session.ts";

/** The body of a reset. */
const resetSchema = z.looseObject({
  seed: z.int().min(0).nullish(),
  episode_id: z.string().max(255).nullish(),
  split: z.string().nullish(),
  index: z.int().min(0).nullish(),
});

/** The body of a step. */
const actionSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("list_tools") }),
  z.object({
    type: z.literal("call_tool"),
    tool_name: z.string(),
    arguments: z.record(z.string(), z.json()).default({}),
  }),
  z.object({ type: z.literal("say"), content: z.string() }),
  z.object({ type: z.literal("finish") }),
]);

/** The schema of actions, for `/schema`. */
export const servedActionSchema: object = z.toJSONSchema(actionSchema, { io: "input" });

/** The parts of a session's episodes. */
interface ServedParts {
  readonly environment: Environment;
  readonly user: User;
  /** The longest time for a call of the environment, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, "after" | "now">;
  /** Aborts when the session is over. */
  readonly signal: AbortSignal;
}

/** The current episode of a session. A reset starts another one. */
export class ServedEpisode implements AsyncDisposable {
  readonly #parts: ServedParts;
  #world: JudgedWorld | undefined;
  #task: Task | undefined;
  #episodeId: string | undefined;
  #stepCount = 0;
  #isDone = false;

  constructor(parts: ServedParts) {
    this.#parts = parts;
  }

  /** The part of the episode's state that clients see. */
  get state(): object {
    const { id: task_id } = this.#task ?? {};
    return { episode_id: this.#episodeId ?? null, step_count: this.#stepCount, task_id };
  }

  /**
   * Starts an episode.
   * @throws UsageError for a body that is not a reset of this environment, and the environment's
   *   own errors.
   */
  async reset(data: unknown): Promise<OpenEnvResult> {
    const { environment } = this.#parts;
    const wish = read(resetSchema, data, "reset");
    const split = wish.split ?? firstSplit(environment);
    const size = environment.splits[split] ?? 0;
    const seed = wish.seed ?? 0;
    const task = environment.task(split, wish.index ?? (size === 0 ? 0 : seed % size));
    await this.#dispose();
    this.#task = task;
    this.#episodeId = wish.episode_id ?? undefined;
    this.#stepCount = 0;
    this.#isDone = false;
    const judged = await JudgedWorld.open({ ...this.#parts, task, seed });
    this.#world = judged;
    const text = await judged.begin();
    const policy = judged.world.policyText ?? environment.policyText;
    const observation = { text, policy, task_id: task.id };
    return { observation, reward: null, done: false };
  }

  /** Performs an action. Throws as `reset()` does. */
  async step(data: unknown): Promise<OpenEnvResult> {
    const action = read(actionSchema, data, "action");
    if (action.type === "list_tools") {
      const tools = this.#world?.world.tools ?? this.#parts.environment.tools;
      return { observation: { tools: tools.map(describeTool) }, reward: null, done: this.#isDone };
    }
    const world = this.#world;
    if (world === undefined) throw new UsageError("Cannot step: expected a reset first");
    if (this.#isDone) throw new UsageError("Cannot step: the episode is done, expected a reset");
    this.#stepCount += 1;
    if (action.type === "finish") return await this.#finish(world, { text: "" });
    const taken: Action =
      action.type === "say"
        ? action
        : {
            type: "call",
            name: action.tool_name,
            // The schema returns JavaScript numbers.
            arguments: exactOf(
              (data as { readonly arguments?: unknown }).arguments ?? {},
            ) as PyDict,
          };
    const step = await world.step(taken);
    const observation = describeStep(action.type, step);
    if (step.done !== undefined) return await this.#finish(world, observation);
    return { observation, reward: null, done: false };
  }

  async #finish(
    world: JudgedWorld,
    observation: OpenEnvResult["observation"],
  ): Promise<OpenEnvResult> {
    this.#isDone = true;
    const { reward, details } = await world.score();
    return { observation, reward, done: true, metadata: { details } };
  }

  async #dispose(): Promise<void> {
    const world = this.#world;
    this.#world = undefined;
    await world?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }
}

function read<Value>(schema: z.ZodType<Value>, data: unknown, what: string): Value {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => {
    return `${path.length === 0 ? "" : `${path.join(".")}: `}${message}`;
  });
  throw new UsageError(`Cannot read the ${what}: ${problems.join("; ")}`);
}

/** Returns the default split: `train`, or the first one if there is no `train`. */
function firstSplit({ splits }: Environment): string {
  return "train" in splits ? "train" : (Object.keys(splits)[0] ?? "test");
}

function describeTool(tool: ToolDefinition): object {
  const description = (tool.openai.get("function") as PyDict).get("description");
  const schema = toolParameters(tool);
  const parameters =
    schema === undefined
      ? { type: "object", properties: {} }
      : new WrittenJson(writeCompactJson(schema));
  return {
    name: tool.name,
    description: description ?? "",
    input_schema: parameters,
  };
}

function describeStep(type: "say" | "call_tool", step: Step): OpenEnvResult["observation"] {
  const { observation, source, isError = false } = step;
  if (type === "say") return { text: observation };
  const error = { error_type: "execution_error", message: observation };
  return {
    tool_name: source,
    result: isError ? null : observation,
    error: isError ? error : null,
  };
}

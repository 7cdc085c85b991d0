import { RolloutError, UsageError } from "../errors.ts";
import { onAbort } from "../async/on-abort.ts";
import { callThrough, type Outside } from "../outside.ts";
import type { Task } from "../task.ts";
import type { User } from "../user/user.ts";
import { defineTool, type Tool, type ToolMembers } from "./define-tool.ts";
import { toUser, type DefinedUser } from "./defined-user.ts";
import { DefinedWorld, foreign, foreignAsync, type PlayedEpisode } from "./defined-world.ts";
import type { Environment } from "./environment.ts";
import { EpisodeResources, type GetResource } from "./episode-resources.ts";
import { EpisodeState } from "./state/episode-state.ts";
import { refuseMisspelt } from "./refuse-misspelt.ts";
import type { ScoreResult } from "./score-result.ts";
import { placeOfCaller } from "../text/source-place.ts";
import { nameTasks, type TaskItem, type TaskSplits } from "./task-list.ts";

/** Tools by name. */
export type ToolRecord<ToolArguments, State> = {
  readonly [Name in keyof ToolArguments]: ToolMembers<ToolArguments[Name], State>;
};

/** The second argument of `initialState()`. */
export interface StateContext {
  /** Aborts when the run stops or the opening times out. */
  readonly signal: AbortSignal;
  /** Records the results of work that cannot be repeated. See `ToolContext`. */
  readonly outside: Outside;
  /** Returns the resource that the episode keeps under a key. See `ToolContext`. */
  readonly resource: GetResource;
}

/** The parts of an environment. `Item` is the type of one task. */
export interface EnvironmentOptions<Item extends TaskItem, State, ToolArguments> {
  /** The environment's name: letters, digits, `-`, `_` and `.`. */
  readonly name: string;
  /** The tasks of the split `test`, or the tasks of several splits by name. */
  readonly tasks: TaskSplits<Item>;
  /**
   * Returns an episode's initial state. It may return the same large value each time: an episode never sees another
   * episode's changes, except changes inside class instances, which are passed as they are. Binary data is copied
   * for each episode and limited to 8 MiB. Default: an empty object.
   */
  readonly initialState?: (task: Item, context: StateContext) => State | Promise<State>;
  /** The agent's instructions: the system message. */
  readonly policy: string | ((task: Item) => string);
  /** The agent's tools: by name, as a list, or as a function from a task to a list. */
  readonly tools:
    | readonly Tool<State>[]
    | ToolRecord<ToolArguments, State>
    | ((task: Item) => readonly Tool<State>[]);
  /** The user if no model plays one: lines or a `User`. Default: a user that says the instruction. */
  readonly user?: DefinedUser<NoInfer<Item>>;
  /** Scores the state that the tools left. */
  readonly score: (
    state: State,
    task: Item,
    episode: PlayedEpisode<State>,
  ) => ScoreResult<State> | Promise<ScoreResult<State>>;
  /** Returns true if the episode is over. Called after each call. Default: the episode ends when the user leaves. */
  readonly isDone?: (state: State, task: Item) => boolean;
  /** Frees the resources that `initialState()` opened. Called after every episode. */
  readonly dispose?: (state: State, task: Item) => unknown;
  /** The origin of the tasks, in words. */
  readonly source?: string;
  /**
   * True if the same actions have the same results, given the same answers of `context.outside`. Episodes can then
   * resume after a crash and be forked. Default false.
   */
  readonly repeatable?: boolean;
}

/** An environment with its own user. */
export interface DefinedEnvironment<Item = unknown> extends Environment<Item> {
  /** The user that is played if no model plays the user. */
  readonly user: User<Item>;
}

/**
 * Defines an environment from its parts. `turnwright rollout --env ./file.js` plays it if it is the module's
 * default export.
 * @throws UsageError naming the part, the tool or the task that is wrong.
 */
export function defineEnvironment<Item extends TaskItem, State, ToolArguments>(
  options: EnvironmentOptions<Item, State, ToolArguments>,
): DefinedEnvironment<Item> {
  const { name, policy, score, initialState, isDone, dispose } = options;
  assertParts({ ...options });
  const where = placeOfCaller();
  const place = where === undefined ? name : `${name} (${where})`;
  const tasks = nameTasks<Item>(name, options.tasks);
  const toolsOf = readTools(name, options.tools);
  const { repeatable = false } = options;
  if (repeatable) assertRepeatable(name, toolsOf.shared);
  const policyOf = typeof policy === "function" ? policy : undefined;
  return {
    name,
    ...(where !== undefined && { definedAt: where }),
    repeatable,
    source: options.source ?? "defined by its author",
    splits: tasks.splits,
    tools: toolsOf.shared === undefined ? [] : definitionsOf(toolsOf.shared),
    policyText: typeof policy === "string" ? policy : "",
    user: toUser(name, options.user),
    task: (split, index) => tasks.task(split, index),
    async open(task, { user, signal, outside = callThrough, onCompared }) {
      signal.throwIfAborted();
      const tools = toolsOf.shared ?? toolsOf.read(task, place);
      if (repeatable) assertRepeatable(name, tools);
      const policyText =
        policyOf && foreign(`policy() of ${place}`, task, () => policyOf(task.data));
      const resources = new EpisodeResources();
      const context = { signal, outside, resource: resources.get };
      // A world cannot be disposed of while it is still opening, and opening may never end.
      const free = async (): Promise<void> =>
        await resources.free({ signal }).catch(() => undefined);
      const unsubscribe = onAbort(signal, () => void free());
      const state = await openState(
        `initialState() of ${place}`,
        task,
        initialState && (async () => await initialState(task.data, context)),
      )
        .catch(async (error: unknown) => {
          await free();
          throw error;
        })
        .finally(unsubscribe);
      return new DefinedWorld<Item, State>({
        environment: place,
        task,
        user,
        tools,
        isDone,
        score,
        dispose,
        outside,
        onCompared,
        resources,
        state,
        own: {
          ...(toolsOf.shared === undefined && { tools: definitionsOf(tools) }),
          ...(policyText !== undefined && { policyText }),
        },
      });
    },
  };
}

/** Maximum amount of binary data in a state, in bytes. Each episode copies it. */
const maxBinaryLength = 8 * 1024 * 1024;

/**
 * Opens the state. An environment may have no state, but an `initialState()` that returns `undefined` lacks its
 * return statement.
 */
async function openState<Item, State>(
  place: string,
  task: Task<Item>,
  work: (() => Promise<State>) | undefined,
): Promise<EpisodeState<State>> {
  if (work === undefined) return new EpisodeState({} as State);
  const bad = (what: string): RolloutError =>
    new RolloutError(
      "environment/bad-world",
      `Cannot use the result of ${place} for task ${task.id}: ${what}`,
    );
  const initial = await foreignAsync(place, task, work, "environment");
  if (initial === undefined) {
    throw bad("nothing (a forgotten return?), expected a state such as {}");
  }
  const state = new EpisodeState(initial);
  if (state.binaryLength <= maxBinaryLength) return state;
  throw bad(
    `it holds ${state.binaryLength} bytes of binary data, which each episode would copy, expected at most ` +
      `${maxBinaryLength} (put read-only data into a constant of the module)`,
  );
}

/**
 * Refuses `repeatable` if a tool's answers cannot be repeated.
 *
 * @throws UsageError naming a tool whose answers depend on data that no recording restores.
 */
function assertRepeatable<State>(
  name: string,
  tools: ReadonlyMap<string, Tool<State>> | undefined,
): void {
  for (const [tool, { callable }] of tools ?? []) {
    if (callable.isElsewhere !== true) continue;
    throw new UsageError(
      `Cannot define environment ${name}: it is repeatable, but tool ${tool} works on what ` +
        "lies outside of the episode, expected no `repeatable: true`",
    );
  }
}

const partNames = [
  "name",
  "tasks",
  "initialState",
  "policy",
  "tools",
  "user",
  "score",
  "isDone",
  "dispose",
  "source",
  "repeatable",
];

/**
 * Checks the parts of the definition.
 *
 * @throws UsageError naming the first part that is missing or of the wrong kind.
 */
function assertParts(options: Readonly<Record<string, unknown>>): void {
  const { name } = options;
  if (typeof name !== "string" || !/^[\w.-]+$/.test(name) || name.startsWith("tau-")) {
    throw new UsageError(
      `Cannot define environment ${JSON.stringify(name)}: expected a name of letters, digits, -, _ and ., ` +
        "which does not begin as τ-bench's do",
    );
  }
  const refuse = (part: string, expected: string): never => {
    const value = options[part];
    const what = value === undefined ? `it has no ${part}` : `its ${part} is a ${typeof value}`;
    const more = Array.isArray(value)
      ? ` (there is no renderer for images, sound and files yet, only text)`
      : "";
    throw new UsageError(`Cannot define environment ${name}: ${what}${more}, expected ${expected}`);
  };
  refuseMisspelt(options, partNames, `environment ${name}`);
  const { policy, score, initialState, isDone, dispose, tools } = options;
  if (typeof policy !== "string" && typeof policy !== "function") {
    refuse("policy", "a text, or a function from a task to one");
  }
  if (typeof score !== "function") refuse("score", "a function score(state, task)");
  for (const [part, value] of Object.entries({ initialState, isDone, dispose })) {
    if (value !== undefined && typeof value !== "function") refuse(part, "a function or nothing");
  }
  if (tools === null || (typeof tools !== "object" && typeof tools !== "function")) {
    refuse("tools", "tools by name, or a list of defineTool() results");
  }
}

interface EnvironmentTools<Item, State> {
  /** The tools of every task. Absent if each task has its own tools. */
  readonly shared?: ReadonlyMap<string, Tool<State>>;
  /** Returns the tools of one task. */
  readonly read: (task: Task<Item>, place: string) => ReadonlyMap<string, Tool<State>>;
}

function readTools<Item extends TaskItem, State, ToolArguments>(
  name: string,
  tools: EnvironmentOptions<Item, State, ToolArguments>["tools"],
): EnvironmentTools<Item, State> {
  if (typeof tools === "function") {
    return {
      read: (task, place) =>
        foreign(`tools() of ${place}`, task, () =>
          byName<State>(
            name,
            foreign(`tools() of ${place}`, task, () => tools(task.data)),
          ),
        ),
    };
  }
  const list = Array.isArray(tools)
    ? (tools as readonly Tool<State>[])
    : Object.entries(tools as Readonly<Record<string, ToolMembers<unknown, State>>>).map(
        ([tool, members]) => defineTool<unknown, State>({ ...members, name: tool }),
      );
  const shared = byName<State>(name, list);
  return { shared, read: () => shared };
}

function byName<State>(
  environment: string,
  tools: readonly Tool<State>[],
): ReadonlyMap<string, Tool<State>> {
  const found = new Map<string, Tool<State>>();
  for (const [index, tool] of tools.entries()) {
    if (typeof tool !== "object" || tool === null || !("callable" in tool)) {
      throw new UsageError(
        `Cannot define environment ${environment}: tools[${index}] is not a tool, ` +
          "expected what defineTool() returns",
      );
    }
    if (found.has(tool.name)) {
      throw new UsageError(
        `Cannot define environment ${environment}: two tools are called ${tool.name}, expected names of their own`,
      );
    }
    found.set(tool.name, tool);
  }
  return found;
}

function definitionsOf<State>(tools: ReadonlyMap<string, Tool<State>>) {
  return Array.from(tools.values(), ({ definition }) => definition);
}

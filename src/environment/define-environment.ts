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

/** Tools by their names. */
export type ToolRecord<ToolArguments, State> = {
  readonly [Name in keyof ToolArguments]: ToolMembers<ToolArguments[Name], State>;
};

/** What `initialState()` may want beside the task. */
export interface StateContext {
  /** Aborts when the run stops or the time for it is over. */
  readonly signal: AbortSignal;
  /** For what cannot be repeated: what it brings is recorded. See `ToolContext`. */
  readonly outside: Outside;
  /** What the episode holds under a key until it is over. See `ToolContext`. */
  readonly resource: GetResource;
}

/** A domain in as few words as it takes; `Item` is what a task consists of. */
export interface EnvironmentOptions<Item extends TaskItem, State, ToolArguments> {
  /** Letters, digits, `-`, `_` and `.`. */
  readonly name: string;
  /** Tasks of the split `test`, or of several splits by their names. */
  readonly tasks: TaskSplits<Item>;
  /**
   * What an episode's state is at first. It may be the same value each time, and large: nothing that
   * an episode changes is seen by another, but for what it changes within an instance of a class, which is passed
   * as it is. Of binary data it may hold 8 MiB, which are copied for each episode. Absent: an empty object.
   */
  readonly initialState?: (task: Item, context: StateContext) => State | Promise<State>;
  /** What the agent is told to go by: the system message. */
  readonly policy: string | ((task: Item) => string);
  /** The agent's tools: by their names, as a list, or each task's own list. */
  readonly tools:
    | readonly Tool<State>[]
    | ToolRecord<ToolArguments, State>
    | ((task: Item) => readonly Tool<State>[]);
  /** Who speaks for the user where no model does: lines, or a user. Absent: says the instruction. */
  readonly user?: DefinedUser<Item>;
  /** What was reached is worth what. The state is as the tools left it. */
  readonly score: (
    state: State,
    task: Item,
    episode: PlayedEpisode<State>,
  ) => ScoreResult<State> | Promise<ScoreResult<State>>;
  /** Whether the episode is over, asked after each call. Absent: it ends when the user leaves. */
  readonly isDone?: (state: State, task: Item) => boolean;
  /** Frees what `initialState()` took, whatever became of the episode. */
  readonly dispose?: (state: State, task: Item) => unknown;
  /** Where the tasks come from, in words. */
  readonly source?: string;
  /**
   * Whether the same actions have the same results, with the same answers of `context.outside`. Its episodes
   * then go on after a crash in the middle, and can be forked. Default false.
   */
  readonly repeatable?: boolean;
}

/** An environment that brings its own user. */
export interface DefinedEnvironment<Item = unknown> extends Environment<Item> {
  /** Plays the user's part where no model does. */
  readonly user: User;
}

/**
 * Defines an environment from its parts. `turnwright rollout --env ./file.js` plays it where it is the
 * module's default export.
 *
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
    async open(task, { user, signal, outside = callThrough }) {
      signal.throwIfAborted();
      const tools = toolsOf.shared ?? toolsOf.read(task, place);
      if (repeatable) assertRepeatable(name, tools);
      const policyText =
        policyOf && foreign(`policy() of ${place}`, task, () => policyOf(task.data));
      const resources = new EpisodeResources();
      const context = { signal, outside, resource: resources.get };
      // Nobody has a world to dispose of while it is being opened, which may never end.
      const free = async (): Promise<void> =>
        await resources.free({ signal }).catch(() => undefined);
      const letGo = onAbort(signal, () => void free());
      const state = await openState(
        `initialState() of ${place}`,
        task,
        initialState && (async () => await initialState(task.data, context)),
      )
        .catch(async (error: unknown) => {
          await free();
          throw error;
        })
        .finally(letGo);
      return new DefinedWorld<Item, State>({
        environment: place,
        task,
        user,
        tools,
        isDone,
        score,
        dispose,
        outside,
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

/** Binary data in a state, which each episode has a copy of. */
const maxBinaryLength = 8 * 1024 * 1024;

/** An environment may have no state; one that means to have it has forgotten its return. */
async function openState<Item, State>(
  place: string,
  task: Task<Item>,
  work: (() => Promise<State>) | undefined,
): Promise<EpisodeState<State>> {
  if (work === undefined) return new EpisodeState({} as State);
  const bad = (what: string): RolloutError =>
    new RolloutError(
      "environment/bad-world",
      `Cannot use what ${place} returned for task ${task.id}: ${what}`,
    );
  const initial = await foreignAsync(place, task, work, "environment");
  if (initial === undefined) {
    throw bad("nothing (a forgotten return?), expected a state such as {}");
  }
  const state = new EpisodeState(initial);
  if (state.binaryLength <= maxBinaryLength) return state;
  throw bad(
    `it holds ${state.binaryLength} bytes of binary data, which each episode would copy, expected at most ` +
      `${maxBinaryLength} (a constant of the module holds what is only read)`,
  );
}

/** @throws UsageError naming a tool whose answers depend on what no recording brings back. */
function assertRepeatable<State>(
  name: string,
  tools: ReadonlyMap<string, Tool<State>> | undefined,
): void {
  for (const [tool, { callable }] of tools ?? []) {
    if (callable.isElsewhere !== true) continue;
    throw new UsageError(
      `Cannot define environment ${name}: it says that it is repeatable, and tool ${tool} works on what ` +
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

/** @throws UsageError naming the first part that is missing or of the wrong kind. */
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
    refuse("tools", "tools by their names, or a list of what defineTool() returns");
  }
}

interface EnvironmentTools<Item, State> {
  /** Those of every task; absent where each has its own. */
  readonly shared?: ReadonlyMap<string, Tool<State>>;
  /** A task's own. */
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
        `Cannot define environment ${environment}: tools[${index}] is no tool, ` +
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

import { UsageError } from "../errors.ts";
import { toolFromOpenAi, type ToolDefinition } from "../message.ts";
import { exactOf } from "../python/json/exact-json.ts";
import { refuseMisspelt } from "./refuse-misspelt.ts";
import type { CallableTool, ToolContext } from "./tool-call.ts";
import { readParameters, type CheckedArguments, type ToolParameters } from "./tool-parameters.ts";

/** How long a call may take where a tool does not say, in milliseconds. */
const defaultTimeoutMs = 30_000;

/** A tool without its name. */
export interface ToolMembers<Arguments, State> {
  /** What it is for, in words for the model. */
  readonly description: string;
  /** What it takes: an object, by zod or another Standard Schema, or as JSON Schema. Absent: nothing. */
  readonly parameters?: ToolParameters<Arguments>;
  /** How long a call may take, in milliseconds; then the episode has failed. Default 30 seconds. */
  readonly timeoutMs?: number;
  /** Whether a call of it ends the episode. A refused one does not. */
  readonly ends?: boolean;
  /**
   * Performs a call with arguments that fit, on this episode's own state, which it may change. Returns
   * (or promises) a text, or data that is shown as JSON. `refuse()` answers a mistake of the model's.
   */
  readonly execute: (args: Arguments, state: State, context: ToolContext) => unknown;
}

/** A tool of a defined environment. */
export interface ToolOptions<Arguments, State> extends ToolMembers<Arguments, State> {
  /** As the model calls it: letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
}

/** A tool that environments with this state can have: made by `defineTool()`. */
export interface Tool<in State> {
  readonly name: string;
  /** As the model sees it. */
  readonly definition: ToolDefinition;
  /** For `defineEnvironment()`. */
  readonly callable: CallableTool<State>;
}

const partNames = ["name", "description", "parameters", "execute", "timeoutMs", "ends"];

/**
 * Defines a tool: `execute` gets arguments that were checked, typed by the schema.
 *
 * @throws UsageError that names the tool and what is wrong with it.
 */
export function defineTool<Arguments, State = unknown>(
  options: ToolOptions<Arguments, State>,
): Tool<State> {
  const { tool, unusable } = defineForeignTool(options);
  if (unusable.length > 0) {
    throw new UsageError(
      `Cannot define tool ${tool.name}: its parameters are no JSON Schema: ${unusable.join("; ")}`,
    );
  }
  const { check } = tool.callable;
  return {
    ...tool,
    callable: { ...tool.callable, check: (given) => refuseUnchecked(check(given)) },
  };
}

/** Nobody else checks the arguments of an own tool: what cannot be checked is the model's mistake. */
function refuseUnchecked(
  checked: CheckedArguments | Promise<CheckedArguments>,
): CheckedArguments | Promise<CheckedArguments> {
  const isUnchecked = "unchecked" in checked && checked.unchecked !== undefined;
  return isUnchecked
    ? { problems: [`the arguments are too large to check: ${checked.unchecked}`] }
    : checked;
}

/** A tool whose JSON Schema somebody else wrote. */
export interface ForeignTool<State> {
  readonly tool: Tool<State>;
  /** What of the schema is not checked: each part's place, and the reason. */
  readonly unusable: readonly string[];
}

/**
 * Defines a tool that another program checks as well: what cannot be used of its JSON Schema is not
 * checked here.
 *
 * @throws UsageError for everything else that is wrong with it.
 */
export function defineForeignTool<Arguments, State = unknown>(
  options: ToolOptions<Arguments, State>,
): ForeignTool<State> {
  const { name, description, parameters, execute } = options;
  const { timeoutMs = defaultTimeoutMs, ends = false } = options;
  if (typeof name !== "string" || !/^[\w-]{1,64}$/.test(name)) {
    throw new UsageError(
      `Cannot define tool ${JSON.stringify(name)}: expected a name of letters, digits, _ and -, at most 64`,
    );
  }
  if (typeof description !== "string") {
    throw new UsageError(
      `Cannot define tool ${name}: it has no description, expected a text for the model`,
    );
  }
  if (typeof execute !== "function") {
    throw new UsageError(
      `Cannot define tool ${name}: it has no function execute, expected execute(args, state)`,
    );
  }
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0)) {
    throw new UsageError(
      `Cannot define tool ${name}: timeoutMs is ${String(timeoutMs)}, expected milliseconds above 0`,
    );
  }
  refuseMisspelt(options, partNames, `tool ${name}`);
  const { jsonSchema, unusable, check } = readParameters(parameters, name);
  const openai = { type: "function", function: { name, description, parameters: jsonSchema } };
  const tool: Tool<State> = {
    name,
    definition: toolFromOpenAi(exactOf(openai), `tool ${name}`),
    callable: {
      name,
      timeoutMs,
      ends,
      jsonSchema,
      unusable,
      check,
      execute: execute as CallableTool<State>["execute"],
    },
  };
  return { tool, unusable };
}

import { UsageError } from "../errors.ts";
import { toolFromOpenAi, type ToolDefinition } from "../message.ts";
import { exactOf } from "../json/exact-json.ts";
import { refuseMisspelt } from "./refuse-misspelt.ts";
import type { CallableTool, ToolContext } from "./tool-call.ts";
import { readParameters, type CheckedArguments, type ToolParameters } from "./tool-parameters.ts";

/** Default time limit of a call, in milliseconds. */
const defaultTimeoutMs = 30_000;

/** A tool without its name. */
export interface ToolMembers<Arguments, State> {
  /** The tool's purpose, in words for the model. */
  readonly description: string;
  /**
   * The parameters: an object of zod or another Standard Schema library, or a JSON Schema. Default: no parameters.
   */
  readonly parameters?: ToolParameters<Arguments>;
  /** Time limit of a call in milliseconds. A call that exceeds it fails the episode. Default 30 000. */
  readonly timeoutMs?: number;
  /** True if a successful call ends the episode. A refused call does not. */
  readonly ends?: boolean;
  /**
   * Performs a call. The arguments fit the schema, and the call may change this episode's state. Returns (or
   * promises) a text, or data that is shown as JSON. Call `refuse()` to answer a mistake of the model.
   */
  readonly execute: (args: Arguments, state: State, context: ToolContext) => unknown;
}

/** A tool of a defined environment. */
export interface ToolOptions<Arguments, State> extends ToolMembers<Arguments, State> {
  /** The name that the model uses: at most 64 letters, digits, `_` and `-`. */
  readonly name: string;
}

/** A tool for environments with this state. `defineTool()` creates it. */
export interface Tool<in State> {
  readonly name: string;
  /** The definition that the model sees. */
  readonly definition: ToolDefinition;
  /** The tool as `defineEnvironment()` calls it. */
  readonly callable: CallableTool<State>;
}

const partNames = ["name", "description", "parameters", "execute", "timeoutMs", "ends"];

/**
 * Defines a tool. `execute` gets validated arguments, typed by the schema.
 * @throws UsageError that names the tool and its problem.
 */
export function defineTool<Arguments, State = unknown>(
  options: ToolOptions<Arguments, State>,
): Tool<State> {
  const { tool, unusable } = defineForeignTool(options);
  if (unusable.length > 0) {
    throw new UsageError(
      `Cannot define tool ${tool.name}: its parameters are not a valid JSON Schema: ${unusable.join("; ")}`,
    );
  }
  const { check } = tool.callable;
  return {
    ...tool,
    callable: { ...tool.callable, check: (given) => refuseUnchecked(check(given)) },
  };
}

/** Refuses arguments that the schema cannot check: no other program checks the arguments of an own tool. */
function refuseUnchecked(
  checked: CheckedArguments | Promise<CheckedArguments>,
): CheckedArguments | Promise<CheckedArguments> {
  const isUnchecked = "unchecked" in checked && checked.unchecked !== undefined;
  return isUnchecked
    ? { problems: [`the arguments are too large to check: ${checked.unchecked}`] }
    : checked;
}

/** A tool with another program's JSON Schema. */
export interface ForeignTool<State> {
  readonly tool: Tool<State>;
  /** The parts of the schema that are not checked: each part's place, and the reason. */
  readonly unusable: readonly string[];
}

/**
 * Defines a tool with arguments that another program checks as well. Parts of its JSON Schema that cannot be used are
 * not checked here.
 * @throws UsageError for any other problem of the tool.
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

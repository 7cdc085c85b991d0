import { UsageError } from "../../errors.ts";
import {
  defineForeignTool,
  type ForeignTool,
  type Tool,
  type ToolOptions,
} from "../../environment/define-tool.ts";
import type { Environment } from "../../environment/environment.ts";
import { nameTasks, type TaskSplits } from "../../environment/task-list.ts";
import { ofUrl, secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import type { ListedTool } from "../mcp/listed-tool.ts";
import { nameTools } from "../mcp/name-tools.ts";
import { reportUnchecked } from "../mcp/report-unchecked.ts";
import { OpenEnvSession, type OpenEnvPlace } from "./open-env-session.ts";
import type { ActingWorld, Limits, OpenEnvOptions, OpenEnvTask } from "./open-env-options.ts";
import { OpenEnvWorld } from "./open-env-world.ts";
import { readServerFacts, type OpenEnvServerFacts } from "./open-env-server-facts.ts";
import { readListedTools } from "./open-env-observation.ts";
import { WrittenJson, exactOf, rememberValue, writeCompactJson } from "../../json/exact-json.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";

/** A world on an OpenEnv server, as an environment. */
export interface OpenEnvEnvironment extends Environment<OpenEnvTask> {
  /** A user without words, because the server speaks first. */
  readonly user: User;
}

/**
 * Returns the world of an OpenEnv server as an environment: `export default await createOpenEnv({
 * url })`. Each episode has its own session. If the server's environment has tools (MCP), the model
 * sees them. Otherwise it sees one tool, `act`, that takes the server's action. The server's
 * replies are recorded.
 * @throws UsageError if the server cannot be reached, or if its actions cannot be described to a
 *   model.
 */
export async function createOpenEnv(options: OpenEnvOptions): Promise<OpenEnvEnvironment> {
  const { timeoutMs = 60_000, connectTimeoutMs = 10_000 } = options;
  hideEverywhere(secretsOfNamed(options.headers ?? {}));
  hideEverywhere(ofUrl(options.url));
  const facts = await readServerFacts(options, connectTimeoutMs);
  const name = options.name ?? facts.name.replaceAll(/[^\w.-]+/g, "-");
  const tasks = nameTasks<OpenEnvTask>(name, options.tasks ?? defaultTasks(name, facts));
  const limits = { timeoutMs, connectTimeoutMs };
  const tools = await readTools(options, { facts, limits });
  return {
    name,
    source: `OpenEnv server ${shownUrl(options.url)}`,
    splits: tasks.splits,
    tools: tools.map(({ definition }) => definition),
    policyText: options.policy ?? facts.description,
    user: createScriptedUser({ lines: [""] }),
    task: (split, index) => tasks.task(split, index),
    open: async (task, { user, signal }) => {
      signal.throwIfAborted();
      return new OpenEnvWorld({ options, limits, task, tools, user });
    },
  };
}

function defaultTasks(name: string, { splits }: OpenEnvServerFacts): TaskSplits<OpenEnvTask> {
  const draw = (length: number, toReset: (index: number) => OpenEnvTask["reset"]) => ({
    length,
    at: (index: number) => ({ instruction: `Play ${name}.`, reset: toReset(index) }),
  });
  if (splits === undefined) {
    return {
      train: draw(10_000, (index) => ({ seed: index })),
      test: draw(100, (index) => ({ seed: 1_000_000 + index })),
    };
  }
  const bySplit = Object.entries(splits).map(([split, size]) => [
    split,
    draw(size, (index) => ({ split, index })),
  ]);
  return Object.fromEntries(bySplit) as TaskSplits<OpenEnvTask>;
}

async function readTools(
  options: OpenEnvOptions,
  { facts, limits }: { readonly facts: OpenEnvServerFacts; readonly limits: Limits },
): Promise<readonly Tool<ActingWorld>[]> {
  const { onTrouble = (trouble: string): void => process.emitWarning(trouble) } = options;
  const report = (trouble: string): void => onTrouble(`OpenEnv server ${options.url}: ${trouble}`);
  const properties =
    (facts.actionSchema as { readonly properties?: object | null }).properties ?? {};
  const { metadata: _own, ...fields } = properties as Readonly<Record<string, unknown>>;
  const exactFields = new Map(exactOf(properties) as PyDict);
  exactFields.delete("metadata");
  rememberValue(fields, exactFields);
  const isOfTools = Object.keys(fields).every((key) =>
    ["type", "tool_name", "arguments"].includes(key),
  );
  const { timeoutMs } = limits;
  if (!isOfTools) {
    const parameters = { ...facts.actionSchema, properties: fields };
    const description = facts.description === "" ? "Act in the environment." : facts.description;
    const act = exactTool({
      name: "act",
      description,
      parameters,
      timeoutMs,
      execute: async (_, world, { exactArguments }) =>
        await world.act(new WrittenJson(writeCompactJson(exactArguments))),
    });
    return [reportUnchecked(act, "act", report)];
  }
  const listed = await listTools(options, { limits, report });
  return nameTools(listed, undefined, report).map(({ ownName, listed: each }) => {
    const { name, title, description = title ?? "", inputSchema: parameters } = each;
    const tool = exactTool({
      name: ownName,
      description,
      parameters,
      timeoutMs,
      execute: async (_, world, { exactArguments }) => {
        const given = new WrittenJson(writeCompactJson(exactArguments));
        return await world.act({ type: "call_tool", tool_name: name, arguments: given });
      },
    });
    return reportUnchecked(tool, name, report);
  });
}

/** Defines a tool that passes the model's arguments to the server unchanged. */
function exactTool(options: ToolOptions<unknown, ActingWorld>): ForeignTool<ActingWorld> {
  const { tool, unusable } = defineForeignTool(options);
  return { tool: { ...tool, callable: { ...tool.callable, takesExact: true } }, unusable };
}

async function listTools(
  place: OpenEnvPlace,
  options: { readonly limits: Limits; readonly report: (trouble: string) => void },
): Promise<readonly ListedTool[]> {
  const { timeoutMs, connectTimeoutMs } = options.limits;
  const { signal } = new AbortController();
  try {
    await using session = await OpenEnvSession.open(place, { timeoutMs: connectTimeoutMs, signal });
    const { observation } = await session.step({ type: "list_tools" }, { timeoutMs, signal });
    const tools = readListedTools(observation, options.report);
    if (tools.length > 0) return tools;
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
  throw new UsageError(`Cannot use OpenEnv server ${shownUrl(place.url)}: it lists no tools`);
}

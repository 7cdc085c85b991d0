import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import { defineForeignTool, type Tool } from "../../environment/define-tool.ts";
import { refuse } from "../../environment/refuse.ts";
import { shownUrl } from "../../secrets/find-secrets.ts";
import { isObject } from "../../values/is-object.ts";
import type { ToolContext } from "../../environment/tool-call.ts";
import { keepListedTools } from "./kept-tools.ts";
import { readListedTool, unreadDescription, type ListedTool } from "./listed-tool.ts";
import { isSessionEnded, McpConnection } from "./mcp-connection.ts";
import { describeServer, hideServer, type McpServer } from "./mcp-server.ts";
import { nameTools, type NamedTool } from "./name-tools.ts";
import { reportUnchecked } from "./report-unchecked.ts";
import { SharedConnection } from "./shared-connection.ts";

/** The options of `createMcpTools()`: the server, the tools to use, and limits. */
export type McpToolsOptions = McpServer & {
  /**
   * Returns the name by which the model calls a tool. If the function returns `undefined`, the tool is left out.
   * Default: the server's name.
   */
  readonly names?: (name: string) => string | undefined;
  /**
   * True to give each episode a server or session of its own. Use it for servers with state that episodes must not
   * share, such as files or a browser. Default false: all episodes share one connection.
   */
  readonly perEpisode?: boolean;
  /** The longest time for a call, in milliseconds. A call that takes longer fails the episode. Default 30 000. */
  readonly timeoutMs?: number;
  /** The longest time for starting or reaching the server, in milliseconds. Default 60 000. */
  readonly connectTimeoutMs?: number;
  /**
   * A file with the server's tools. The file is read if it exists, and written otherwise. With such a file, only calls
   * need the server, and later changes of the server do not change the tools that the model sees.
   */
  readonly toolsFile?: string;
  /**
   * Maximum length of an answer in characters. Longer answers are cut, and the cut is marked.
   * Default 100 000.
   */
  readonly maxResultLength?: number;
  /**
   * Called with a message for each tool that is left out or renamed, or whose schema has a part
   * that is not checked here. Default: a process warning.
   */
  readonly onTrouble?: (trouble: string) => void;
};

/**
 * Tools of an MCP server. Disposing them closes the shared connection immediately. Otherwise the connection closes
 * shortly after its last use.
 */
export type McpTools = readonly Tool<unknown>[] & AsyncDisposable;

/**
 * Returns the tools of an MCP server, for an environment: `tools: await createMcpTools({ command: "uvx",
 * args: ["mcp-server-time"] })`.
 * The tools' answers are recorded, so that a replay needs no server. The model sees an error that
 * the server reports. If the server is gone, the episode that needs it fails, and the next call
 * connects again. A tool that cannot be used is left out. A part of a schema that our validator
 * does not support is not checked here, because the server checks it. Needs the package
 * `@modelcontextprotocol/client`.
 * @throws UsageError if the server cannot be reached, or has no usable tool.
 */
export async function createMcpTools(options: McpToolsOptions): Promise<McpTools> {
  assertServer(options);
  hideServer(options);
  const { connectTimeoutMs = 60_000, timeoutMs = 30_000 } = options;
  // Later starts use the same working directory, even if the program changes its own.
  const server =
    options.url === undefined ? { ...options, cwd: path.resolve(options.cwd ?? "") } : options;
  const open = async (signal?: AbortSignal): Promise<McpConnection> =>
    await McpConnection.open(server, { timeoutMs: connectTimeoutMs, ...(signal && { signal }) });
  const shared = new SharedConnection(open);
  const place = describeServer(options);
  const { onTrouble = (trouble: string): void => process.emitWarning(trouble) } = options;
  const report = (trouble: string): void => onTrouble(`MCP server ${place}: ${trouble}`);
  const list = async () => await listTools(shared, { timeoutMs, place, report });
  const { toolsFile } = options;
  const listed = toolsFile === undefined ? await list() : await keepListedTools(toolsFile, list);
  const connect =
    options.perEpisode === true
      ? async ({ resource, signal }: ToolContext) =>
          await resource(shared, async () => await open(signal))
      : async ({ resource }: ToolContext) => {
          await resource(shared, async () => shared.lease());
          return await shared.connection();
        };
  const named = nameTools(listed, options.names, report);
  const tools = named.map((tool) => toTool(tool, options, { connect, report }));
  return Object.assign(tools, {
    [Symbol.asyncDispose]: async () => await shared[Symbol.asyncDispose](),
  });
}

/** The names of all options. The compiler checks that none is missing. */
const optionNames: Readonly<Record<keyof McpToolsOptions, true>> = {
  command: true,
  args: true,
  env: true,
  cwd: true,
  url: true,
  headers: true,
  names: true,
  perEpisode: true,
  timeoutMs: true,
  connectTimeoutMs: true,
  toolsFile: true,
  maxResultLength: true,
  onTrouble: true,
};

function assertServer(options: McpToolsOptions): void {
  const { command, url, args, env, headers } = options;
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(optionNames, name));
  if (unknown !== undefined) {
    throw new UsageError(
      `Cannot use an MCP server: there is no option ${JSON.stringify(unknown)}, expected some of ` +
        Object.keys(optionNames).join(", "),
    );
  }
  assertTexts("args", args, Array.isArray(args));
  assertTexts("env", env, isObject(env));
  assertTexts("headers", headers, isObject(headers));
  if ((command === undefined) === (url === undefined)) {
    throw new UsageError(
      'Cannot use an MCP server: expected either { command: "uvx", args: ["mcp-server-time"] } or ' +
        '{ url: "http://127.0.0.1:8000/mcp" }',
    );
  }
  if (url !== undefined && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "")) {
    throw new UsageError(
      `Cannot use an MCP server at ${shownUrl(url)}: expected an address such as http://127.0.0.1:8000/mcp`,
    );
  }
}

/** @throws UsageError if a value is no text. The message leaves out the value, which may be a secret. */
function assertTexts(name: string, values: object | undefined, isOfKind: boolean): void {
  if (values === undefined) return;
  const expected = name === "args" ? "a list of texts" : "an object of texts";
  if (!isOfKind) throw new UsageError(`Cannot use an MCP server: ${name} is not ${expected}`);
  const wrong = Object.entries(values).find(([, value]) => typeof value !== "string");
  if (wrong === undefined) return;
  throw new UsageError(
    `Cannot use an MCP server: the value of ${JSON.stringify(wrong[0])} in ${name} is not a text, expected ${expected}`,
  );
}

interface ListOptions {
  readonly timeoutMs: number;
  readonly place: string;
  readonly report: (trouble: string) => void;
}

async function listTools(
  shared: SharedConnection,
  { timeoutMs, place, report }: ListOptions,
): Promise<readonly ListedTool[]> {
  const problems: string[] = [];
  try {
    await using _lease = shared.lease();
    const connection = await shared.connection();
    const { tools: sent, cut } = await connection.listTools({ timeoutMs });
    if (cut !== undefined)
      report(`the tools after the ${sent.length} that were read are missing: ${cut}`);
    const tools: ListedTool[] = [];
    for (const each of sent) {
      const read = readListedTool(each);
      if ("problem" in read) {
        problems.push(read.problem);
        continue;
      }
      tools.push(read);
      const unread = unreadDescription(each);
      if (unread === undefined) continue;
      const name = JSON.stringify(read.name);
      report(`the description of tool ${name} is left out: it is ${unread}, expected a text`);
    }
    if (tools.length > 0) {
      for (const problem of problems) report(`a tool is left out: ${problem}`);
      return tools;
    }
  } catch (error) {
    await shared[Symbol.asyncDispose]();
    if (error instanceof UsageError) throw error;
    throw new UsageError(describeError(error), { cause: error });
  }
  await shared[Symbol.asyncDispose]();
  const why = problems.length === 0 ? "" : ` that can be used: ${problems.join("; ")}`;
  throw new UsageError(`Cannot use MCP server ${place}: it lists no tools${why}`);
}

interface ToolSurroundings {
  readonly connect: (context: ToolContext) => Promise<McpConnection>;
  readonly report: (trouble: string) => void;
}

function toTool(
  { ownName, listed }: NamedTool,
  options: McpToolsOptions,
  { connect, report }: ToolSurroundings,
): Tool<unknown> {
  const { timeoutMs = 30_000, maxResultLength: maxLength = 100_000 } = options;
  const { name, title, description = title ?? "", inputSchema } = listed;
  try {
    const foreign = defineForeignTool<Readonly<Record<string, unknown>>>({
      name: ownName,
      description,
      timeoutMs,
      parameters: inputSchema,
      async execute(_given, _state, context) {
        const { outside, signal } = context;
        const { text, isError } = await outside(`mcp ${name}`, async () => {
          const given = context.exactArguments;
          const call = { tool: name, arguments: given, signal, timeoutMs, maxLength };
          const connection = await connect(context);
          return await connection.call(call).catch(async (error: unknown) => {
            // An episode's own session had state, which a new session lacks.
            if (options.perEpisode === true || !isSessionEnded(error)) throw error;
            return await (await connect(context)).call(call);
          });
        });
        // `refuse()` adds the word "Error" itself.
        if (isError) refuse(text.replace(/^error:\s*/i, ""));
        return text;
      },
    });
    const tool = reportUnchecked(foreign, name, report);
    const isElsewhere = options.perEpisode === true;
    return { ...tool, callable: { ...tool.callable, isElsewhere, takesExact: true } };
  } catch (error) {
    throw new UsageError(
      `Cannot use tool ${JSON.stringify(name)} of MCP server ${describeServer(options)}: ` +
        `${describeError(error)} (the option names gives it another name, or leaves it out)`,
      { cause: error },
    );
  }
}

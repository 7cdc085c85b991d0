import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import { defineTool, type Tool } from "../../environment/define-tool.ts";
import { refuse } from "../../environment/refuse.ts";
import type { ToolContext } from "../../environment/tool-call.ts";
import { McpConnection, type ListedTool } from "./mcp-connection.ts";
import { describeServer, type McpServer } from "./mcp-server.ts";
import { keepListedTools } from "./kept-tools.ts";
import { SharedConnection } from "./shared-connection.ts";

/** Which tools of an MCP server are used, and how. */
export type McpToolsOptions = McpServer & {
  /** A tool's name as the model is to call it; `undefined` leaves the tool out. Default: its own. */
  readonly names?: (name: string) => string | undefined;
  /**
   * Whether each episode has a server, or a session, of its own: for servers with a state that episodes
   * must not share, such as files or a browser. Default false: one connection for all.
   */
  readonly perEpisode?: boolean;
  /** How long a call may take, in milliseconds; then the episode has failed. Default 30 seconds. */
  readonly timeoutMs?: number;
  /** How long the server may take to be there, in milliseconds. Default 60 seconds. */
  readonly connectTimeoutMs?: number;
  /**
   * A file that keeps which tools the server listed: read where it is there, else written. With it the server
   * is needed for calls alone, and what the model is shown does not change when the server does.
   */
  readonly toolsFile?: string;
  /** Longest answer in characters; what is over is left out, and said. Default 100 000. */
  readonly maxResultLength?: number;
};

/** Tools of an MCP server. Disposing them closes the shared connection at once rather than a moment later. */
export type McpTools = readonly Tool<unknown>[] & AsyncDisposable;

/**
 * The tools of an MCP server, as tools of an environment: `tools: await mcpTools({ command: "uvx", args:
 * ["mcp-server-time"] })`. What a tool answers is recorded, so that an episode can be played again without
 * the server. A call that the server calls a mistake is shown to the model; a server that is gone fails the
 * episode that needs it, and is reached anew by the next call. Needs the package
 * `@modelcontextprotocol/client`.
 *
 * @throws UsageError where the server cannot be reached, or has tools that cannot be used.
 */
export async function mcpTools(options: McpToolsOptions): Promise<McpTools> {
  assertServer(options);
  const { connectTimeoutMs = 60_000, timeoutMs = 30_000 } = options;
  // Each start is made where the first one is: whoever plays may change the working directory meanwhile.
  const server =
    options.url === undefined ? { ...options, cwd: path.resolve(options.cwd ?? "") } : options;
  const open = async (signal?: AbortSignal): Promise<McpConnection> =>
    await McpConnection.open(server, { timeoutMs: connectTimeoutMs, ...(signal && { signal }) });
  const shared = new SharedConnection(open);
  const list = async () => await listTools(shared, { timeoutMs, place: describeServer(options) });
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
  const tools = listed.flatMap((tool) => toTool(tool, options, connect) ?? []);
  return Object.assign(tools, {
    [Symbol.asyncDispose]: async () => await shared[Symbol.asyncDispose](),
  });
}

function assertServer({ command, url }: McpToolsOptions): void {
  if ((command === undefined) === (url === undefined)) {
    throw new UsageError(
      'Cannot use an MCP server: expected either { command: "uvx", args: ["mcp-server-time"] } or ' +
        '{ url: "http://127.0.0.1:8000/mcp" }',
    );
  }
  if (url !== undefined && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : "")) {
    throw new UsageError(
      `Cannot use an MCP server at ${url}: expected an address such as http://127.0.0.1:8000/mcp`,
    );
  }
}

async function listTools(
  shared: SharedConnection,
  { timeoutMs, place }: { readonly timeoutMs: number; readonly place: string },
): Promise<readonly ListedTool[]> {
  try {
    await using _lease = shared.lease();
    const connection = await shared.connection();
    const tools = await connection.listTools({ timeoutMs });
    if (tools.length > 0) return tools;
  } catch (error) {
    await shared[Symbol.asyncDispose]();
    if (error instanceof UsageError) throw error;
    throw new UsageError(describeError(error), { cause: error });
  }
  await shared[Symbol.asyncDispose]();
  throw new UsageError(`Cannot use MCP server ${place}: it lists no tools`);
}

function toTool(
  { name, title, description = title ?? "", inputSchema }: ListedTool,
  options: McpToolsOptions,
  connect: (context: ToolContext) => Promise<McpConnection>,
): Tool<unknown> | undefined {
  const { names, timeoutMs = 30_000, maxResultLength: maxLength = 100_000 } = options;
  const ownName = names === undefined ? name : names(name);
  if (ownName === undefined) return undefined;
  try {
    const tool = defineTool<Readonly<Record<string, unknown>>>({
      ...{ name: ownName, description, timeoutMs, parameters: inputSchema },
      async execute(_given, _state, context) {
        const { outside, signal } = context;
        const { text, isError } = await outside(`mcp ${name}`, async () => {
          const connection = await connect(context);
          return await connection.call({
            tool: name,
            arguments: context.exactArguments,
            signal,
            timeoutMs,
            maxLength,
          });
        });
        // The answer to a mistake says once that it is one.
        if (isError) refuse(text.replace(/^error:\s*/i, ""));
        return text;
      },
    });
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

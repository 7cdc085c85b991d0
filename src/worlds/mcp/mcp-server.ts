/** An MCP server that is started as a process and spoken to over its standard input and output. */
export interface McpCommand {
  /** A program, such as `npx` or `uvx`; no shell reads it. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables that a server gets otherwise (`PATH`, `HOME` and the like). */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the working folder when `mcpTools()` is called. */
  readonly cwd?: string;
  readonly url?: never;
  readonly headers?: never;
}

/** An MCP server that is reached over streamable HTTP. */
export interface McpAddress {
  /** Its endpoint, such as `http://127.0.0.1:8000/mcp`. */
  readonly url: string;
  /** Sent with each request, such as `{ authorization: "Bearer …" }`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly command?: never;
  readonly args?: never;
  readonly env?: never;
  readonly cwd?: never;
}

/** Where an MCP server is. */
export type McpServer = McpCommand | McpAddress;

/** The server in a complaint, without what its address or its variables may hold in secret. */
export function describeServer(server: McpServer): string {
  if (server.url === undefined) return [server.command, ...(server.args ?? [])].join(" ");
  if (!URL.canParse(server.url)) return server.url;
  const { origin, pathname } = new URL(server.url);
  return `${origin}${pathname}`;
}

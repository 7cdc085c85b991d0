import { ofUrl, secretsOfArguments, secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { hideEverywhere, redactionMark, Redactor } from "../../secrets/redactor.ts";

/** An MCP server that is started as a process and spoken to over its standard input and output. */
export interface McpCommand {
  /** A program, such as `npx` or `uvx`; no shell reads it. */
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables that a server gets otherwise (`PATH`, `HOME` and the like). */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the working folder when `createMcpTools()` is called. */
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

/** An MCP server: a command to start, or an address. */
export type McpServer = McpCommand | McpAddress;

/** The server in a complaint: without its arguments and its variables, which may be secrets. */
export function describeServer(server: McpServer): string {
  return server.url === undefined ? server.command : shownUrl(server.url);
}

/** Has all that this process writes from now on go without the server's secrets. */
export function hideServer({ args = [], env = {}, headers = {}, url = "" }: McpServer): void {
  for (const found of [
    secretsOfArguments(args),
    secretsOfNamed(env),
    secretsOfNamed(headers),
    ofUrl(url),
  ]) {
    hideEverywhere(found);
  }
}

/** Shorter values than this are words of a message as well, in characters. */
const shortest = 4;

/**
 * Takes all values out of a text that the server was started or is reached with, secret or not: what a server says
 * of itself may repeat any of them.
 */
export function withoutValues(
  text: string,
  { args = [], env = {}, headers = {} }: McpServer,
): string {
  const given = args.flatMap((argument) => {
    const [, value] = /^-[^=]*=(.*)$/s.exec(argument) ?? [];
    return argument.startsWith("-") ? (value ?? []) : argument;
  });
  const values = [...given, ...Object.values(env), ...Object.values(headers)]
    .filter(({ length }) => length >= shortest)
    .toSorted((one, other) => other.length - one.length);
  const clean = new Redactor(values).text(text);
  return values.reduce((rest, value) => rest.replaceAll(value, redactionMark), clean);
}

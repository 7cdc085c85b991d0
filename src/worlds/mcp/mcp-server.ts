import { ofUrl, secretsOfArguments, secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { hideEverywhere, redactionMark, Redactor } from "../../secrets/redactor.ts";

/** An MCP server that runs as a process and communicates over its standard input and output. */
export interface McpCommand {
  /** The program, such as `npx` or `uvx`. No shell interprets the text. */
  readonly command: string;
  readonly args?: readonly string[];
  /**
   * Environment variables in addition to the few that every server gets (`PATH`, `HOME` and the
   * like).
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory. Default: that of this process when `createMcpTools()` is called. */
  readonly cwd?: string;
  readonly url?: never;
  readonly headers?: never;
}

/** An MCP server over streamable HTTP. */
export interface McpAddress {
  /** The server's endpoint, such as `http://127.0.0.1:8000/mcp`. */
  readonly url: string;
  /** Headers for each request, such as `{ authorization: "Bearer …" }`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly command?: never;
  readonly args?: never;
  readonly env?: never;
  readonly cwd?: never;
}

/** An MCP server: a command to start, or an address. */
export type McpServer = McpCommand | McpAddress;

/**
 * Returns a name of the server for messages, without arguments and variables, which may be secrets.
 */
export function describeServer(server: McpServer): string {
  return server.url === undefined ? server.command : shownUrl(server.url);
}

/** Registers the server's secrets, so that all later output of this process is without them. */
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

/**
 * Minimum length of a value that is removed, in characters. Shorter ones may be ordinary words of a
 * message.
 */
const shortest = 4;

/**
 * Removes all of the server's arguments, variables and headers from a text, secret or not, because
 * a server's message may repeat any of them.
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

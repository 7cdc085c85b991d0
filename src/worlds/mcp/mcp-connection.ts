import { stat } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import type * as mcp from "@modelcontextprotocol/client";
import { RolloutError, UsageError, describeError } from "../../errors.ts";
import { withDeadline } from "../../async/deadline.ts";
import { Redactor, withoutCutSecret } from "../../secrets/redactor.ts";
import { readVersion } from "../../composition/version.ts";
import { readAnswer, type McpAnswer, type McpResult } from "./mcp-answer.ts";
import { describeServer, withoutValues, type McpServer } from "./mcp-server.ts";
import { ExactMessages } from "./exact-messages.ts";
import { exactFetch, exactStdio } from "./exact-transport.ts";
import { PageWatch } from "./page-watch.ts";
import { readPages, type ToolListing, type ToolPage } from "./tool-pages.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";

/** A call of a tool. */
interface McpCall {
  readonly tool: string;
  /** The arguments as the model wrote them. */
  readonly arguments: PyDict;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Maximum length of an answer, in characters. */
  readonly maxLength: number;
}

/** Maximum length of a server's standard error in an error message, in characters. */
const quotedLength = 500;
/** The number of characters of standard error that are kept. */
const keptLength = 64 * 1024;

/** The code of a call that the server did not perform, because it no longer knows the session. */
const sessionEnded = "environment/session-ended";

/** True if a call failed because the server no longer knows its session. */
export function isSessionEnded(error: unknown): boolean {
  return error instanceof RolloutError && error.code === sessionEnded;
}

/** A connection to an MCP server, through the official client. */
export class McpConnection implements AsyncDisposable {
  readonly #client: mcp.Client;
  readonly #library: typeof mcp;
  readonly #server: McpServer;
  readonly #lastWords: () => string;
  readonly #pages: PageWatch;
  readonly #messages: ExactMessages;
  /** True once the connection has ended. */
  isClosed = false;

  private constructor(
    parts: {
      readonly client: mcp.Client;
      readonly library: typeof mcp;
      readonly server: McpServer;
      readonly pages: PageWatch;
      readonly messages: ExactMessages;
    },
    lastWords: () => string,
  ) {
    this.#messages = parts.messages;
    this.#client = parts.client;
    this.#library = parts.library;
    this.#server = parts.server;
    this.#pages = parts.pages;
    this.#lastWords = lastWords;
    // This is a callback of the protocol, not a DOM event.
    Object.assign(this.#client, { onclose: () => (this.isClosed = true) });
  }

  /**
   * Starts or reaches the server.
   * @throws UsageError if the client's package is missing.
   * @throws RolloutError `environment/unreachable` or `environment/unauthorized`.
   */
  static async open(
    server: McpServer,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<McpConnection> {
    const library = await loadClient();
    const messages = new ExactMessages();
    const { transport, lastWords } = await createTransport(library, server, messages);
    const client = new library.Client({ name: "turnwright", version: await readVersion() });
    const pages = new PageWatch(transport);
    const parts = { client, library, server, pages, messages };
    const connection = new McpConnection(parts, lastWords);
    try {
      await withDeadline(
        async (within) => await client.connect(transport, { signal: within, timeout: timeoutMs }),
        {
          ms: timeoutMs,
          signal: signal ?? new AbortController().signal,
          onLate: () => {
            throw new Error(`no answer within ${timeoutMs} ms`);
          },
        },
      );
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      signal?.throwIfAborted();
      throw connection.#attribute(await blameFolder(error, server), "reach");
    }
  }

  /**
   * Lists the server's tools. Each is unchanged from the server's reply.
   *
   * @throws RolloutError with party `environment`.
   */
  async listTools({ timeoutMs }: { readonly timeoutMs: number }): Promise<ToolListing> {
    const { ProtocolError, SdkError, SdkErrorCode } = this.#library;
    const faultOf = (error: unknown): string | undefined => {
      if (error instanceof ProtocolError) return "refuses";
      const isNoPage = error instanceof SdkError && error.code === SdkErrorCode.InvalidResult;
      return isNoPage ? "has no page for" : undefined;
    };
    const readPage = async (cursor: string | undefined): Promise<ToolPage> => {
      const params = cursor === undefined ? {} : { cursor };
      const request = { method: "tools/list", params } as const;
      const page = await this.#pages.take(async () => {
        await this.#client.request(request, { timeout: timeoutMs });
      });
      return { ...page, tools: page.tools.map((tool) => this.#messages.toolOf(tool)) };
    };
    try {
      return await readPages(readPage, faultOf);
    } catch (error) {
      throw this.#attribute(error, "list the tools of");
    }
  }

  /**
   * Calls a tool. Returns errors that the server reports as an answer for the model.
   * @throws RolloutError with party `environment`, `environment/session-ended` if the server no
   *   longer knows the session and so did not perform the call; the signal's reason if it is
   *   aborted.
   */
  async call({ tool, signal, timeoutMs, maxLength, ...call }: McpCall): Promise<McpAnswer> {
    const params = { name: tool, arguments: this.#messages.carry(call.arguments) };
    const request = { method: "tools/call", params } as const;
    try {
      // `signal` has the time limit of the call. The client's own limit comes later.
      const options = { signal, timeout: timeoutMs + 5_000 };
      const result = await this.#client.request(request, options);
      const { structuredContent } = result as McpResult;
      const structuredText = this.#messages.textOf(structuredContent);
      return readAnswer({ ...(result as McpResult), structuredText }, { tool, maxLength });
    } catch (error) {
      signal.throwIfAborted();
      const { ProtocolError, INVALID_PARAMS } = this.#library;
      if (error instanceof ProtocolError && error.code === INVALID_PARAMS) {
        return { text: error.message, isError: true };
      }
      throw this.#attribute(this.#asSessionEnd(error) ?? error, `call tool ${tool} of`);
    }
  }

  /**
   * Returns a `SessionEnd` if the error means that the server no longer knows the session. The
   * protocol has status 404 for this. Other servers answer 410, or 400 with a word about the
   * session.
   */
  #asSessionEnd(error: unknown): SessionEnd | undefined {
    if (!(error instanceof this.#library.SdkHttpError)) return undefined;
    if (this.#client.transport?.sessionId === undefined) return undefined;
    const { status } = error.data;
    const isEnd =
      status === 404 || status === 410 || (status === 400 && /session/i.test(error.message));
    return isEnd ? new SessionEnd(describeError(error), { cause: error }) : undefined;
  }

  #attribute(error: unknown, doing: string): RolloutError {
    if (error instanceof RolloutError) return error;
    const said = this.#lastWords();
    const words = said === "" ? "" : ` (its standard error ends with: ${said})`;
    const { code, why, retryable } = describeFailure(error, this.#library);
    if (code === "environment/unreachable" || code === sessionEnded) this.isClosed = true;
    const place = `MCP server ${describeServer(this.#server)}`;
    const message = `Cannot ${doing} ${place}: ${withoutValues(why, this.#server)}${words}`;
    if (error instanceof Error) new Redactor().error(error);
    return new RolloutError(code, message, { cause: error, retryable });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isClosed = true;
    // A server that has already ended cannot be closed.
    await this.#client.close().catch(() => undefined);
  }
}

/**
 * The error for a session that a server no longer knows, for example after a restart or an idle
 * time.
 */
class SessionEnd extends Error {}

/**
 * Returns an error that names the working directory if it is missing. Node's own error names only
 * the program.
 */
async function blameFolder(failure: unknown, { cwd }: McpServer): Promise<unknown> {
  const { code } = failure as { readonly code?: unknown };
  if (cwd === undefined || (code !== "ENOENT" && code !== "ENOTDIR")) return failure;
  const isFolder = await stat(cwd).then(
    (found) => found.isDirectory(),
    () => false,
  );
  return isFolder ? failure : new Error(`its folder ${cwd} is not there`, { cause: failure });
}

interface DescribedFailure {
  readonly code: `environment/${string}`;
  readonly why: string;
  readonly retryable: boolean;
}

function describeFailure(error: unknown, library: typeof mcp): DescribedFailure {
  const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } = library;
  const why = describeError(error);
  if (error instanceof SessionEnd) {
    return { code: sessionEnded, why: `it has ended the session: ${why}`, retryable: true };
  }
  if (error instanceof SdkHttpError) {
    const { status } = error.data;
    if (status === 401 || status === 403) {
      const code = "environment/unauthorized";
      return { code, why: `${why}, expected headers that it accepts`, retryable: false };
    }
    const isOther = status === 404 || status === 405;
    const hint = isOther ? " (HTTP 404 or 405: no MCP endpoint? such as http://HOST/mcp)" : "";
    return { code: "environment/unreachable", why: `${why}${hint}`, retryable: true };
  }
  if (error instanceof ProtocolError) {
    return {
      code: "environment/exception",
      why: `it answered error ${error.code}: ${why}`,
      retryable: true,
    };
  }
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.RequestTimeout)
      return { code: "environment/timeout", why, retryable: true };
    const isBad =
      error.code === SdkErrorCode.InvalidResult ||
      error.code === SdkErrorCode.UnsupportedResultType;
    if (isBad) return { code: "environment/bad-result", why, retryable: false };
  }
  const { code } = error as { readonly code?: unknown };
  const missing = code === "ENOENT" ? `${why} (there is no such program)` : why;
  return { code: "environment/unreachable", why: missing, retryable: true };
}

async function loadClient(): Promise<typeof mcp> {
  try {
    return await import("@modelcontextprotocol/client");
  } catch (error) {
    throw new UsageError(
      "Cannot use MCP servers: the optional package @modelcontextprotocol/client does not load " +
        `(${describeError(error).split("\n")[0]}), install it: npm i @modelcontextprotocol/client@2`,
      { cause: error },
    );
  }
}

async function createTransport(
  library: typeof mcp,
  server: McpServer,
  messages: ExactMessages,
): Promise<{ readonly transport: mcp.Transport; readonly lastWords: () => string }> {
  if (server.url !== undefined) {
    const headers = { ...server.headers };
    const options = {
      requestInit: { headers },
      reconnectionOptions: noReconnection,
      fetch: exactFetch(messages),
    };
    const transport = new library.StreamableHTTPClientTransport(new URL(server.url), options);
    return { transport, lastWords: () => "" };
  }
  const { StdioClientTransport, getDefaultEnvironment } =
    await import("@modelcontextprotocol/client/stdio");
  const { command, args = [], env, cwd } = server;
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...getDefaultEnvironment(), ...env },
    ...(cwd !== undefined && { cwd }),
    stderr: "pipe",
  });
  exactStdio(transport, messages);
  let said = "";
  // A character may be split between two chunks.
  const decoder = new StringDecoder("utf8");
  transport.stderr?.on("data", (piece: Buffer) => {
    said = `${said}${decoder.write(piece)}`.slice(-keptLength);
  });
  const lastWords = (): string => {
    const { args = [], env = {} } = server;
    const values = [...args, ...Object.values(env)];
    const whole = said.length < keptLength ? said : withoutCutSecret(said, values);
    return withoutValues(whole, server)
      .trim()
      .slice(-quotedLength)
      .trim()
      .replaceAll(/\s*\n\s*/g, " | ");
  };
  return { transport, lastWords };
}

/** Reports a lost connection. The next call connects again. */
const noReconnection = {
  initialReconnectionDelay: 1_000,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 1,
  maxRetries: 0,
};

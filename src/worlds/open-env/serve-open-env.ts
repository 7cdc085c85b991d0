import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { Environment } from "../../environment/environment.ts";
import { RolloutError, UsageError, describeError } from "../../errors.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import { knownCodings } from "../../http/content-coding.ts";
import { listenOrRefuse } from "../../http/listen.ts";
import { requestPath } from "../../http/request-path.ts";
import { addressOf, isLocalAddress, isLocalHost } from "../../http/local-host.ts";
import { defaultScript, createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import { answerHttp, HttpRefusal } from "./open-env-routes.ts";
import { ServedEpisode } from "./served-episode.ts";
import { writeJsonWith } from "../../environment/plain-text.ts";
import { decodeText } from "../../text/decode-text.ts";
import { rememberExact, writtenText } from "../../json/exact-json.ts";

/** Options for serving an environment. */
export interface ServeOpenEnvOptions {
  /** The address to listen on. Default 127.0.0.1, which only this machine can reach. */
  readonly host?: string;
  /** The port to listen on. Default 8000; 0: any free port. */
  readonly port?: number;
  /** The user. Default: the environment's own user, or one that states the task. */
  readonly user?: User;
  /** Maximum number of concurrent sessions. Default 1000. */
  readonly maxSessions?: number;
  /** The time after which a silent session is closed, in milliseconds. Default half an hour. */
  readonly idleMs?: number;
  /** The longest time for a call of the environment, in milliseconds. Default 60 seconds. */
  readonly timeoutMs?: number;
  /** The clock for waits. Default: the machine's. */
  readonly clock?: Pick<Clock, "after" | "now">;
}

/** A running server. Disposing it ends its sessions. */
export interface ServedOpenEnv extends AsyncDisposable {
  readonly url: string;
  readonly sessionCount: number;
}

/** Maximum size of a message, in bytes. */
const maxMessageBytes = 4 * 2 ** 20;

/** Maximum number of unanswered messages in a session. Clients send one at a time. */
const maxWaitingMessages = 16;

/**
 * Serves an environment as OpenEnv, for trainers with an OpenEnv client. Each connection is a
 * session of its own. A reset takes `split` and `index`, or `seed`. A step is `{"type":
 * "call_tool", "tool_name", "arguments"}`, `{"type": "say", "content"}`, `{"type": "list_tools"}`
 * or `{"type": "finish"}`. The step that ends the episode has its reward.
 * @throws UsageError if the address is in use.
 */
export async function serveOpenEnv(
  environment: Environment & { readonly user?: User },
  options: ServeOpenEnvOptions = {},
): Promise<ServedOpenEnv> {
  const { host = "127.0.0.1", port = 8000, maxSessions = 1000 } = options;
  const user = options.user ?? environment.user ?? createScriptedUser({ lines: defaultScript });
  const sessions = new Set<AsyncDisposable>();
  const sockets = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes });
  const isLocal = isLocalHost(host);
  const isAllowed = isLocal ? isLocalOrigin : isSameOrigin;
  const server = createServer((request, response) => {
    if (!isAllowed(request)) response.writeHead(403).end();
    else void answer(environment, request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Registered first, because a client may reset the connection at any time.
    socket.on("error", () => socket.destroy());
    const isPlace = requestPath(request.url) === "/ws";
    if (!isPlace || !isAllowed(request)) {
      refuseUpgrade(socket, isPlace ? "403 Forbidden" : "404 Not Found");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (connection) => {
      connection.on("error", () => connection.terminate());
      const isFull = sessions.size >= maxSessions;
      const message = isFull
        ? {
            message: `${maxSessions} sessions are open, and no more are taken`,
            code: "CAPACITY_REACHED",
          }
        : undefined;
      if (message !== undefined) {
        connection.send(JSON.stringify({ type: "error", data: message }));
        connection.close();
        return;
      }
      openSession(connection, { ...options, environment, user, sessions });
    });
  });
  const taken = await listenOrRefuse(server, { host, port });
  return {
    url: addressOf(host, taken),
    get sessionCount() {
      return sessions.size;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all([...sessions].map(async (session) => await session[Symbol.asyncDispose]()));
      for (const connection of sockets.clients) connection.terminate();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers and closes the connection, even if the client keeps its half open. */
function refuseUpgrade(socket: Duplex, status: string): void {
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/**
 * True if a request to a loopback server comes from a program on this machine. Refuses web pages in
 * a browser, by any host name.
 */
function isLocalOrigin({ headers }: IncomingMessage): boolean {
  const { host = "", origin } = headers;
  return isLocalAddress(`http://${host}`) && (origin === undefined || isLocalAddress(origin));
}

/**
 * True if a request to a public server comes from a program, or from a page of the server itself. A
 * browser sends the page's origin, and only a foreign page has another host.
 */
function isSameOrigin({ headers }: IncomingMessage): boolean {
  const { host, origin } = headers;
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === host);
}

async function answer(
  environment: Environment,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, body } = await answerHttp(environment, request).catch((error: unknown) => ({
    status: statusOf(error),
    body: { detail: describeError(error) },
  }));
  if (status === 415) response.setHeader("accept-encoding", knownCodings);
  // The rest of an unread body would be parsed as the next request.
  if (!request.complete) response.setHeader("connection", "close");
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function statusOf(error: unknown): number {
  if (error instanceof HttpRefusal) return error.status;
  return error instanceof UsageError ? 400 : 500;
}

interface SessionParts extends ServeOpenEnvOptions {
  readonly environment: Environment;
  readonly user: User;
  readonly sessions: Set<AsyncDisposable>;
}

/** Answers the messages of a session one by one, until the client disconnects. */
function openSession(connection: WebSocket, parts: SessionParts): void {
  const { environment, user, sessions, clock = systemClock } = parts;
  const { idleMs = 30 * 60_000, timeoutMs = 60_000 } = parts;
  const over = new AbortController();
  const { signal } = over;
  const episode = new ServedEpisode({ environment, user, timeoutMs, clock, signal });
  let last = Promise.resolve();
  let waitingCount = 0;
  let callOff = clock.after(idleMs, () => connection.terminate());
  const session: AsyncDisposable = {
    [Symbol.asyncDispose]: async () => {
      if (!sessions.delete(session)) return;
      callOff();
      over.abort(new DOMException("the session is over", "AbortError"));
      await last;
      // A failure to free resources is ignored, because the client has gone.
      await episode[Symbol.asyncDispose]().catch(() => undefined);
    },
  };
  sessions.add(session);
  const end = (): void => void session[Symbol.asyncDispose]();
  connection.on("close", end);
  connection.on("error", end);
  connection.on("message", (data: Buffer) => {
    callOff();
    callOff = clock.after(idleMs, () => connection.terminate());
    waitingCount += 1;
    if (waitingCount > maxWaitingMessages) {
      connection.close(1008, `more than ${maxWaitingMessages} messages wait for their answers`);
      return;
    }
    last = last.then(async () => {
      const reply = await answerMessage(episode, data);
      waitingCount -= 1;
      if (reply === "close") connection.close();
      else if (!signal.aborted) connection.send(reply);
    });
  });
}

/** Returns the answer as JSON, or `close` if the client ends the session. Never rejects. */
async function answerMessage(episode: ServedEpisode, data: Buffer): Promise<string> {
  let message: { readonly type?: unknown; readonly data?: unknown };
  try {
    const text = decodeText(data);
    message = (JSON.parse(text) ?? {}) as typeof message;
    rememberExact(message, text);
  } catch (error) {
    return refusal("INVALID_JSON", `Invalid JSON: ${describeError(error)}`);
  }
  try {
    switch (message.type) {
      case "reset":
        return write({ type: "observation", data: await episode.reset(message.data ?? {}) });
      case "step":
        return write({ type: "observation", data: await episode.step(message.data) });
      case "state":
        return write({ type: "state", data: episode.state });
      case "close":
        return "close";
      default:
        return refusal("UNKNOWN_TYPE", `Unknown message type: ${String(message.type)}`);
    }
  } catch (error) {
    const code = error instanceof UsageError ? "VALIDATION_ERROR" : "EXECUTION_ERROR";
    const named = error instanceof RolloutError ? `${error.code}: ` : "";
    return refusal(code, `${named}${describeError(error)}`);
  }
}

function refusal(code: string, message: string): string {
  return write({ type: "error", data: { message, code } });
}

function write(message: object): string {
  return writeJsonWith(message, writtenText);
}

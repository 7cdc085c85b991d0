import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";

/** The server's answer to one request. */
export type ScriptedAnswer =
  /** A completion with this text. */
  | string
  /** A complete description of a completion. */
  | {
      readonly content: string | null;
      readonly reasoning?: string;
      /** Calls as name and arguments. */
      readonly calls?: readonly (readonly [name: string, argumentsText: string])[];
      readonly finishReason?: string;
      /** Input and output tokens. `null` reports none. Default 10 and 5. */
      readonly usage?: readonly [number, number] | null;
    }
  /** Any HTTP response. */
  | {
      readonly status: number;
      readonly body: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Never answers, or cuts the connection before or during the answer. */
  | { readonly trouble: "hang" | "cut" | "cut-within" };

/** One request that the server received. */
export interface TakenRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Readonly<Record<string, unknown>>;
}

/** A server on the loopback address that answers `/chat/completions` from a list. */
export interface ChatCompletionsServer extends AsyncDisposable {
  /** The base URL, such as `http://127.0.0.1:40000/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly TakenRequest[];
  /** Returns the number of connections so far. */
  readonly connectionCount: () => number;
  /** Resolves when the next hanging request has arrived. */
  hanging(): Promise<void>;
  /** Resolves when no connection is open. */
  deserted(): Promise<void>;
}

/** Starts a server. Answers are used in order. After the last one it answers 500. */
export async function startChatCompletionsServer(
  answers: readonly ScriptedAnswer[],
): Promise<ChatCompletionsServer> {
  const requests: TakenRequest[] = [];
  let connectionCount = 0;
  let hangingCount = 0;
  const watchers: (() => void)[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const body = JSON.parse(text === "" ? "{}" : text) as Record<string, unknown>;
      if (request.url?.endsWith("/models") === true) {
        send(response, { status: 404, body: "{}" });
        return;
      }
      if (!("messages" in body)) {
        // Real servers answer so, and clients use it to check that the server exists.
        send(response, { status: 400, body: "messages is required" });
        return;
      }
      const answer = answers[requests.length] ?? { status: 500, body: "the script is exhausted" };
      requests.push({
        path: request.url ?? "",
        headers: request.headers,
        body,
      });
      if (typeof answer === "object" && "trouble" in answer && answer.trouble === "hang") {
        const watcher = watchers.shift();
        if (watcher === undefined) hangingCount += 1;
        else watcher();
      } else send(response, answer);
    });
  });
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connectionCount += 1;
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    connectionCount: () => connectionCount,
    async hanging() {
      if (hangingCount === 0) await new Promise<void>((resolve) => watchers.push(resolve));
      else hangingCount -= 1;
    },
    async deserted() {
      for (const socket of open) await once(socket, "close");
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(response: ServerResponse, answer: ScriptedAnswer): void {
  if (typeof answer === "object" && "trouble" in answer) {
    if (answer.trouble === "cut") {
      response.destroy();
      return;
    }
    response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
    response.write('{"choices": [', () => response.destroy());
    return;
  }
  if (typeof answer === "object" && "status" in answer) {
    response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
    response.end(answer.body);
    return;
  }
  response.writeHead(200, { "content-type": "application/json" });
  response.end(
    JSON.stringify(completion(typeof answer === "string" ? { content: answer } : answer)),
  );
}

function completion({
  content,
  reasoning,
  calls,
  finishReason = calls === undefined ? "stop" : "tool_calls",
  usage = [10, 5],
}: Extract<ScriptedAnswer, { content: string | null }>): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "test-model",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content,
          reasoning_content: reasoning,
          tool_calls: calls?.map(([name, argumentsText], index) => ({
            id: `call_${index}`,
            type: "function",
            function: { name, arguments: argumentsText },
          })),
        },
        finish_reason: finishReason,
      },
    ],
    ...(usage !== null && {
      usage: {
        prompt_tokens: usage[0],
        completion_tokens: usage[1],
        total_tokens: usage[0] + usage[1],
      },
    }),
  };
}

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createLocalSandboxes, type Sandbox } from "../../src/worlds/index.ts";

/** A service that opens sandboxes for those who know its token, `secret`; disposing it ends it. */
export interface SandboxService extends AsyncDisposable {
  readonly url: string;
  /** The requests that sandboxes received. */
  readonly opened: readonly object[];
  /** Commands that are running. */
  runningCount(): number;
}

/** Serves sandboxes over HTTP, as others' services do; they are folders below `dir`. */
export async function startSandboxService(dir: string): Promise<SandboxService> {
  const boxes = createLocalSandboxes({ dir });
  const open = new Map<string, Sandbox>();
  const opened: object[] = [];
  let runningCount = 0;

  async function answer(request: IncomingMessage, signal: AbortSignal): Promise<object | string> {
    const text = await readBody(request);
    const [, id = "", action] = request.url!.slice(1).split("/");
    if (request.headers.authorization !== "Bearer secret") return "401 who are you?";
    const box = open.get(id);
    if (request.method === "POST" && id === "") {
      opened.push(JSON.parse(text) as object);
      const made = await boxes.open({ signal });
      open.set(made.id, made);
      return { id: made.id };
    }
    if (box === undefined) return "404 no such sandbox";
    if (request.method === "DELETE") {
      open.delete(id);
      await box[Symbol.asyncDispose]();
      return {};
    }
    if (action !== "run") return "404 no such call";
    const { command, ...options } = JSON.parse(text) as { command: readonly string[] };
    runningCount += 1;
    try {
      return await box.run(command, { ...options, signal });
    } finally {
      runningCount -= 1;
    }
  }

  const server = createServer((request, response) => {
    const gone = new AbortController();
    response.once("close", () => gone.abort(new Error("the client has disconnected")));
    void answer(request, gone.signal)
      .catch((error: unknown) => `500 ${String(error)}`)
      .then((reply) => send(response, reply));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    opened,
    runningCount: () => runningCount,
    async [Symbol.asyncDispose]() {
      for (const box of open.values()) await box[Symbol.asyncDispose]();
      open.clear();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request.setEncoding("utf8")) text += String(piece);
  return text;
}

/** A text is an error: its status and its message. */
function send(response: ServerResponse, reply: object | string): void {
  if (typeof reply !== "string") {
    response.writeHead(200).end(JSON.stringify(reply));
    return;
  }
  response.writeHead(Number(reply.slice(0, 3))).end(reply.slice(4));
}

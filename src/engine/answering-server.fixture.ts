import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** One request that the server received. */
export interface ReceivedCall {
  /** The path with its query. */
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Starts a server that replies with `answer(call)` and records every call it receives. */
export async function answeringServer(
  answer: (call: ReceivedCall) => { readonly status?: number; readonly body: unknown },
): Promise<AsyncDisposable & { readonly url: string; readonly calls: readonly ReceivedCall[] }> {
  const calls: ReceivedCall[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    request.on("end", () => {
      const body = (text === "" ? {} : JSON.parse(text)) as ReceivedCall["body"];
      const call = { path: request.url!, body };
      calls.push(call);
      const reply = answer(call);
      response.writeHead(reply.status ?? 200).end(JSON.stringify(reply.body));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

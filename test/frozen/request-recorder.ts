import { createServer, request as sendRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy on loopback that keeps each request it passes on. */
export interface RequestRecorder extends AsyncDisposable {
  readonly url: string;
  /** Method, path and body of each request with a body, in the order in which they arrived. */
  readonly requests: readonly string[];
}

/** Starts a proxy in front of the server at `target`. */
export async function recordRequests(target: string): Promise<RequestRecorder> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const body = await readBody(request);
      if (body.length > 0) requests.push(`${request.method} ${request.url}\n${body.toString()}`);
      const onward = sendRequest(
        new URL(request.url ?? "/", target),
        { method: request.method, headers: request.headers },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on("error", (error) => response.destroy(error));
      onward.end(body);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

import type { RequestListener, Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A server that listens on this machine only. */
export interface ListeningServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening and drops all connections. */
  close(): Promise<void>;
}

/** Connections that a client keeps idle must not be closed under its next request, in milliseconds. */
const KEEP_ALIVE_MS = 60_000;

/** Starts to listen; port 0 means any free one. */
export async function listen(port: number, onRequest: RequestListener): Promise<ListeningServer> {
  const http: Server = createServer(onRequest);
  http.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, "127.0.0.1", resolve);
  });
  const { port: boundPort } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${boundPort}`,
    port: boundPort,
    async close() {
      if (!http.listening) return;
      const closed = new Promise((resolve) => {
        http.close(resolve);
      });
      http.closeAllConnections();
      await closed;
    },
  };
}

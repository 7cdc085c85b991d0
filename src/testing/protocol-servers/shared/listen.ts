import type { RequestListener, Server } from "node:http";
import { createServer } from "node:http";
import { listenAt, stopListening } from "../../../http/listen.ts";

/** A server that listens on this machine only. */
interface ListeningServer {
  readonly url: string;
  readonly port: number;
  /** Stops listening and drops all connections. */
  close(): Promise<void>;
}

/**
 * The time for which idle connections stay open, in milliseconds. Closing one earlier could break
 * the client's next request.
 */
const KEEP_ALIVE_MS = 60_000;

/** Starts to listen on a port; 0: any free port. */
export async function listen(port: number, onRequest: RequestListener): Promise<ListeningServer> {
  const http: Server = createServer(onRequest);
  http.keepAliveTimeout = KEEP_ALIVE_MS;
  const boundPort = await listenAt(http, { host: "127.0.0.1", port });
  return {
    url: `http://127.0.0.1:${boundPort}`,
    port: boundPort,
    async close() {
      if (http.listening) await stopListening(http);
    },
  };
}

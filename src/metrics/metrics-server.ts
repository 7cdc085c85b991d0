import { createServer } from "node:http";
import { UsageError, describeError } from "../errors.ts";
import { listenAt, stopListening } from "../http/listen.ts";
import { isLocalAddress } from "../http/local-host.ts";
import { requestPath } from "../http/request-path.ts";
import type { MetricsSource, RunMetrics } from "./run-metrics.ts";

/** A running metrics server. Disposing of it stops the server. */
export interface MetricsServer extends AsyncDisposable, Pick<RunMetrics, "observe"> {
  /** The server's address, such as `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
}

/**
 * Serves a run's metrics to Prometheus on the loopback address.
 * @param port - 0 chooses a free port.
 * @throws UsageError if the port is in use.
 */
export async function startMetricsServer(
  source: MetricsSource,
  { port }: { readonly port: number },
): Promise<MetricsServer> {
  // Loaded on demand, because few programs serve metrics.
  const { createRunMetrics } = await import("./run-metrics.ts");
  const metrics = createRunMetrics(source);
  const server = createServer((request, response) => {
    // Refuses requests with another host name, because a web page could point its own name at this
    // address.
    if (!isLocalAddress(`http://${request.headers.host ?? ""}`)) {
      response.writeHead(403).end();
      return;
    }
    if (request.method !== "GET" || requestPath(request.url) !== "/metrics") {
      response.writeHead(404).end();
      return;
    }
    void metrics.text().then(
      (text) => response.writeHead(200, { "content-type": metrics.contentType }).end(text),
      (error: unknown) => response.writeHead(500).end(describeError(error)),
    );
  });
  let taken: number;
  try {
    taken = await listenAt(server, { host: "127.0.0.1", port });
  } catch (cause) {
    throw new UsageError(
      `Cannot serve metrics on port ${port} (--metrics-port): ${describeError(cause)}; choose another, or 0 for any`,
      { cause },
    );
  }
  return {
    url: `http://127.0.0.1:${taken}/metrics`,
    observe: (episode) => metrics.observe(episode),
    [Symbol.asyncDispose]: async () => await stopListening(server),
  };
}

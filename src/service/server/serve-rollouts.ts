import { UsageError } from "../../errors.ts";
import type { AddressInfo } from "node:net";
import { listen } from "../../gateway/server/serve.ts";
import { addressOf, isLocalHost } from "../../http/local-host.ts";
import type { RolloutService } from "../rollout-service.ts";
import { createServiceApp, type ServiceAppOptions } from "./service-app.ts";

/** A running HTTP server with the service. */
export interface ServedRollouts extends AsyncDisposable {
  readonly url: string;
}

/** The address of the server, and its options. */
export interface RolloutsPlace extends Omit<ServiceAppOptions, "checksHost"> {
  readonly host: string;
  /** The port to listen on. 0: any free port. */
  readonly port: number;
}

/**
 * Maximum number of connections; further ones are closed. Each running call of NeMo Gym has one.
 */
const maxConnections = 8_192;

/** The time in which streams can send their last line when the service stops, in milliseconds. */
const lastLineMs = 2_000;

/**
 * Starts the HTTP server.
 *
 * @throws UsageError if the address is in use, or if it can be reached from other machines and no
 *   token is set.
 */
export async function serveRollouts(
  service: RolloutService,
  { host, port, ...options }: RolloutsPlace,
): Promise<ServedRollouts> {
  const checksHost = isLocalHost(host);
  if (!checksHost && options.token === undefined) {
    throw new UsageError(
      `Cannot listen on ${host} without --token-env: everybody could use the engine`,
    );
  }
  const { fetch } = createServiceApp(service, { ...options, checksHost });
  const server = await listen({ fetch, hostname: host, port });
  server.maxConnections = maxConnections;
  return {
    url: addressOf(host, (server.address() as AddressInfo).port),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const callOff = setTimeout(() => server.closeAllConnections(), lastLineMs);
      await closed;
      clearTimeout(callOff);
    },
  };
}

import { UsageError } from "../../errors.ts";
import type { AddressInfo } from "node:net";
import { listen } from "../../gateway/server/serve.ts";
import { addressOf, isLocalHost } from "../../http/local-host.ts";
import type { RolloutService } from "../rollout-service.ts";
import { createServiceApp, type ServiceAppOptions } from "./service-app.ts";

/** A service that listens. */
export interface ServedRollouts extends AsyncDisposable {
  readonly url: string;
}

/** The address of the server, and its options. */
export interface RolloutsPlace extends Omit<ServiceAppOptions, "checksHost"> {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** Connections at once, each of NeMo Gym's calls among them; further ones are closed. */
const maxConnections = 8_192;

/** Time that streams have for their last line, in milliseconds. */
const lastLineMs = 2_000;

/**
 * Starts to listen.
 *
 * @throws UsageError for an address beyond this machine without a token, or one that is taken.
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

import { createAdaptorServer } from "@hono/node-server";
import type { AddressInfo } from "node:net";
import type { Server } from "node:http";
import { UsageError, describeError } from "../../errors.ts";
import { listenAt } from "../../http/listen.ts";
import { addressOf, isLocalHost } from "../../http/local-host.ts";
import type { Gateway } from "../gateway.ts";
import type { AccessRules } from "./access.ts";
import type { DeskOf } from "./desk-routes.ts";
import { createGatewayApp } from "./gateway-app.ts";

/** A gateway that listens. */
export interface ServedGateway extends AsyncDisposable {
  readonly url: string;
}

/** Where a gateway listens. */
export interface ServePlace {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly adminToken?: string;
  readonly opensSessions: boolean;
}

/**
 * Starts to listen.
 *
 * @throws UsageError for an address beyond this machine without an admin token, or one that is taken.
 */
export async function serveGateway(
  gateway: Gateway,
  place: ServePlace,
  deskOf?: DeskOf,
): Promise<ServedGateway> {
  const { host, port, adminToken, opensSessions } = place;
  const isLocal = isLocalHost(host);
  if (!isLocal && adminToken === undefined) {
    throw new UsageError(
      `Cannot listen on ${host} without --admin-token-env: everybody could open sessions`,
    );
  }
  const rules: AccessRules = {
    opensSessions,
    checksHost: isLocal,
    ...(adminToken !== undefined && { adminToken }),
  };
  const { fetch } = createGatewayApp(gateway, rules, deskOf);
  const server = await listen({ fetch, hostname: host, port });
  return {
    url: addressOf(host, (server.address() as AddressInfo).port),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Listens with a handler of requests.
 *
 * @throws UsageError for an address that is taken.
 */
export async function listen(options: {
  readonly fetch: Parameters<typeof createAdaptorServer>[0]["fetch"];
  readonly hostname: string;
  readonly port: number;
}): Promise<Server> {
  const { fetch, hostname: host, port } = options;
  const server = createAdaptorServer({ fetch }) as Server;
  // Idle connections must not be closed under a client's next request.
  server.keepAliveTimeout = 75_000;
  try {
    await listenAt(server, { host, port });
  } catch (cause) {
    const message = `Cannot listen on ${host}:${port}: ${describeError(cause)}`;
    throw new UsageError(message, { cause });
  }
  return server;
}

import { createAdaptorServer } from "@hono/node-server";
import type { AddressInfo } from "node:net";
import type { Server } from "node:http";
import { UsageError } from "../../errors.ts";
import { listenOrRefuse, stopListening } from "../../http/listen.ts";
import { addressOf, isLocalHost } from "../../http/local-host.ts";
import type { Gateway } from "../gateway.ts";
import type { AccessRules } from "./access.ts";
import type { EndpointOf } from "./task-routes.ts";
import { createGatewayApp } from "./gateway-app.ts";

/** A listening gateway. */
export interface ServedGateway extends AsyncDisposable {
  readonly url: string;
}

/** The address and access settings of a listening gateway. */
export interface ServePlace {
  readonly host: string;
  /** TCP port. 0 picks a free one. */
  readonly port: number;
  readonly adminToken?: string;
  readonly opensSessions: boolean;
}

/**
 * Starts to listen.
 *
 * @throws UsageError if the address is in use, or is not local and no admin token is set.
 */
export async function serveGateway(
  gateway: Gateway,
  place: ServePlace,
  endpointOf?: EndpointOf,
): Promise<ServedGateway> {
  const { host, port, adminToken, opensSessions } = place;
  const isLocal = isLocalHost(host);
  if (!isLocal && adminToken === undefined) {
    throw new UsageError(
      `Cannot listen on ${host} without --admin-token-env: every host that reaches it could open sessions`,
    );
  }
  const rules: AccessRules = {
    opensSessions,
    checksHost: isLocal,
    ...(adminToken !== undefined && { adminToken }),
  };
  const { fetch } = createGatewayApp(gateway, rules, endpointOf);
  const server = await listen({ fetch, hostname: host, port });
  return {
    url: addressOf(host, (server.address() as AddressInfo).port),
    [Symbol.asyncDispose]: async () => await stopListening(server),
  };
}

/**
 * Starts an HTTP server for a request handler.
 *
 * @throws UsageError if the address is in use.
 */
export async function listen(options: {
  readonly fetch: Parameters<typeof createAdaptorServer>[0]["fetch"];
  readonly hostname: string;
  readonly port: number;
}): Promise<Server> {
  const { fetch, hostname: host, port } = options;
  const server = createAdaptorServer({ fetch }) as Server;
  // An idle connection must not close while a client sends its next request.
  server.keepAliveTimeout = 75_000;
  await listenOrRefuse(server, { host, port });
  return server;
}

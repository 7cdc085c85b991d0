import { Gateway, type GatewayOptions, type OpenedSession } from "./gateway.ts";
import type { SessionWish } from "./session/session-store.ts";
import { createGatewayApp } from "./server/gateway-app.ts";
import type { AccessRules } from "./server/access.ts";

/** A gateway in this process. */
export interface GatewayInProcess extends AsyncDisposable {
  readonly gateway: Gateway;
  /**
   * Answers as the gateway's server would: the `fetch` option of the AI SDK's providers, of `openai` and
   * of `@anthropic-ai/sdk`. Nothing listens anywhere.
   */
  readonly fetch: typeof globalThis.fetch;
  /** Opens a session: its token is the client's API key. */
  openSession(wish?: SessionWish): Promise<OpenedSession>;
}

/** The address that clients in this process are given; nothing is asked of it. */
export const inProcessUrl = "http://turnwright.invalid";

/**
 * Makes a gateway that agents in this process ask: what they sample is kept as training rows, token by
 * token.
 *
 * @throws UsageError where turns of the renderer's model cannot be read.
 * @throws RolloutError where the engine does not answer.
 */
export async function createGateway(
  options: GatewayOptions & Partial<Pick<AccessRules, "adminToken" | "opensSessions">>,
): Promise<GatewayInProcess> {
  const { contextLength } = await options.engine.describe();
  const gateway = new Gateway(options, contextLength);
  const { adminToken, opensSessions = false } = options;
  const rules = {
    opensSessions,
    checksHost: false,
    ...(adminToken === undefined ? {} : { adminToken }),
  };
  const app = createGatewayApp(gateway, rules);
  return {
    gateway,
    fetch: async (input, init) => await app.fetch(new Request(input, init)),
    openSession: async (wish) => await gateway.openSession(wish),
    [Symbol.asyncDispose]: async () => await gateway[Symbol.asyncDispose](),
  };
}

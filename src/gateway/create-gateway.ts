import type { Episode } from "../episode/episode.ts";
import type { GatewayCounts } from "../episode/gateway-counters.ts";
import { askDescription } from "../episode/ask-description.ts";
import { UsageError, type Failure } from "../errors.ts";
import type { Sample } from "../trajectory/sample.ts";
import { Gateway, type GatewayOptions, type OpenedSession } from "./gateway.ts";
import type { SessionRequest } from "./session/session-store.ts";
import type { GatewaySession, SessionReward } from "./session/session.ts";
import { createGatewayApp } from "./server/gateway-app.ts";
import type { AccessRules } from "./server/access.ts";

/** A gateway in this process. Disposing it aborts the turns that are being sampled. */
export interface GatewayInProcess extends AsyncDisposable {
  /**
   * Answers requests without a network connection. Pass it as `fetch` to the AI SDK's providers, to
   * `openai` or to `@anthropic-ai/sdk`.
   */
  readonly fetch: typeof globalThis.fetch;
  /** The counts of turns and features so far. */
  readonly counts: GatewayCounts;
  /** Opens a session. Its token is the client's API key. */
  openSession(request?: SessionRequest): Promise<OpenedSession>;
  /**
   * Sets a session's reward. A later call replaces it.
   *
   * @throws UsageError if no such session is open.
   */
  reward(sessionId: string, reward: SessionReward): Promise<void>;
  /**
   * Returns the training rows of a session's turns so far.
   *
   * @throws UsageError if no such session is open.
   */
  samples(sessionId: string): readonly Sample[];
  /**
   * Ends a session with a reward or a failure. Without either, the gateway's scorer scores it.
   *
   * @throws UsageError if no such session is open.
   */
  finish(
    sessionId: string,
    end?: { readonly reward?: SessionReward; readonly failure?: Failure },
  ): Promise<Episode>;
  /** Makes new turns wait, for example during a weight update. */
  pause(): void;
  resume(): void;
}

/** The base URL for clients in this process. Nothing listens there. */
export const inProcessUrl = "http://turnwright.invalid";

/** Settings of a gateway in this process. */
export type GatewayInProcessOptions = GatewayOptions &
  Partial<Pick<AccessRules, "adminToken" | "opensSessions">>;

/**
 * Creates a gateway for agents in this process. It keeps the turns that they sample as training
 * rows.
 *
 * @throws UsageError if no parser can read the turns of the renderer's model.
 * @throws RolloutError if the engine does not answer.
 */
export async function createGateway(options: GatewayInProcessOptions): Promise<GatewayInProcess> {
  const { gateway, fetch, warnings } = await openInProcess(options);
  for (const warning of warnings) process.emitWarning(warning);
  const find = (sessionId: string): GatewaySession => {
    const session = gateway.store.byId(sessionId);
    if (session !== undefined) return session;
    throw new UsageError(`Cannot find session ${sessionId}: no session with that id is open`);
  };
  return {
    fetch,
    get counts() {
      return gateway.counts;
    },
    openSession: async (request) => await gateway.openSession(request),
    reward: async (sessionId, reward) => await gateway.reward(find(sessionId), reward),
    samples: (sessionId) => gateway.samples(find(sessionId)),
    finish: async (sessionId, end) => await gateway.finish(find(sessionId), end),
    pause: () => gateway.pause(),
    resume: () => gateway.resume(),
    [Symbol.asyncDispose]: async () => await gateway[Symbol.asyncDispose](),
  };
}

/** Creates a gateway and also returns the `Gateway` object, for the package's own callers. */
export async function openInProcess({
  adminToken,
  opensSessions = false,
  ...options
}: GatewayInProcessOptions): Promise<{
  readonly gateway: Gateway;
  readonly fetch: typeof globalThis.fetch;
  /** Warnings about the engine, for the operator. */
  readonly warnings: readonly string[];
}> {
  const { contextLength, warnings = [] } = await askDescription(options.engine, {
    clock: options.clock,
  });
  const gateway = new Gateway(options, contextLength);
  const rules = {
    opensSessions,
    checksHost: false,
    ...(adminToken !== undefined && { adminToken }),
  };
  const app = createGatewayApp(gateway, rules);
  return {
    gateway,
    warnings,
    // A `Request` is passed on as it is.
    fetch: async (input, init) =>
      await app.fetch(
        input instanceof Request && init === undefined ? input : new Request(input, init),
      ),
  };
}

import type { Episode } from "../episode/episode.ts";
import { askDescription } from "../episode/ask-description.ts";
import { UsageError, type Failure } from "../errors.ts";
import type { Sample } from "../trajectory/sample.ts";
import { Gateway, type GatewayOptions, type OpenedSession } from "./gateway.ts";
import type { GatewayCounts } from "./gateway-counters.ts";
import type { SessionWish } from "./session/session-store.ts";
import type { GatewaySession, SessionReward } from "./session/session.ts";
import { createGatewayApp } from "./server/gateway-app.ts";
import type { AccessRules } from "./server/access.ts";

/** A gateway in this process. Disposing it gives up what is being sampled. */
export interface GatewayInProcess extends AsyncDisposable {
  /**
   * Answers as the gateway's server would: the `fetch` option of the AI SDK's providers, of `openai` and
   * of `@anthropic-ai/sdk`. Nothing listens anywhere.
   */
  readonly fetch: typeof globalThis.fetch;
  /** What it has seen so far. */
  readonly counts: GatewayCounts;
  /** Opens a session: its token is the client's API key. */
  openSession(wish?: SessionWish): Promise<OpenedSession>;
  /**
   * Gives a session its reward; the last one counts.
   *
   * @throws UsageError where no such session is open.
   */
  reward(sessionId: string, reward: SessionReward): Promise<void>;
  /**
   * The training rows of a session as they are by now.
   *
   * @throws UsageError where no such session is open.
   */
  samples(sessionId: string): readonly Sample[];
  /**
   * Ends a session, with a reward, a failure, or neither: then it is scored by the gateway's scorer.
   *
   * @throws UsageError where no such session is open.
   */
  finish(
    sessionId: string,
    end?: { readonly reward?: SessionReward; readonly failure?: Failure },
  ): Promise<Episode>;
  /** Holds requests back: while weights are exchanged. */
  pause(): void;
  resume(): void;
}

/** The address that clients in this process are given; nothing is asked of it. */
export const inProcessUrl = "http://turnwright.invalid";

/** What a gateway in this process is made with. */
export type GatewayInProcessOptions = GatewayOptions &
  Partial<Pick<AccessRules, "adminToken" | "opensSessions">>;

/**
 * Makes a gateway that agents in this process ask: what they sample is kept as training rows, token by
 * token.
 *
 * @throws UsageError where turns of the renderer's model cannot be read.
 * @throws RolloutError where the engine does not answer.
 */
export async function createGateway(options: GatewayInProcessOptions): Promise<GatewayInProcess> {
  const { gateway, fetch, warnings } = await openInProcess(options);
  for (const warning of warnings) process.emitWarning(warning);
  const find = (sessionId: string): GatewaySession => {
    const session = gateway.store.byId(sessionId);
    if (session !== undefined) return session;
    throw new UsageError(`Cannot find session ${sessionId}: none of that id is open`);
  };
  return {
    fetch,
    get counts() {
      return gateway.counts;
    },
    openSession: async (wish) => await gateway.openSession(wish),
    reward: async (sessionId, reward) => await gateway.reward(find(sessionId), reward),
    samples: (sessionId) => gateway.samples(find(sessionId)),
    finish: async (sessionId, end) => await gateway.finish(find(sessionId), end),
    pause: () => gateway.pause(),
    resume: () => gateway.resume(),
    [Symbol.asyncDispose]: async () => await gateway[Symbol.asyncDispose](),
  };
}

/** The same, with all that the gateway's own parts work with. */
export async function openInProcess({
  adminToken,
  opensSessions = false,
  ...options
}: GatewayInProcessOptions): Promise<{
  readonly gateway: Gateway;
  readonly fetch: typeof globalThis.fetch;
  /** What a person should know of the engine. */
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
    // A request that is one already is read as it is.
    fetch: async (input, init) =>
      await app.fetch(
        input instanceof Request && init === undefined ? input : new Request(input, init),
      ),
  };
}

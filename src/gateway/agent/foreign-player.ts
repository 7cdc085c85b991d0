import { memoryColumns } from "../../columns/column-store.ts";
import { isDeepStrictEqual } from "node:util";
import type { Engine } from "../../engine/engine.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "../../episode/episode-setup.ts";
import { rendererOf } from "../../episode/renderer-of.ts";
import type { EpisodeLimits } from "../../episode/limits.ts";
import { RolloutError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { startDeadline } from "../../async/deadline.ts";
import { renderAt } from "../../renderer/render-at.ts";
import { inProcessUrl } from "../create-gateway.ts";
import { Gateway } from "../gateway.ts";
import { createGatewayApp } from "../server/gateway-app.ts";
import { serveGateway, type ServedGateway } from "../server/serve.ts";
import type { SessionLimits } from "../session/session-limits.ts";
import type { GatewaySession } from "../session/session.ts";
import { toEpisode } from "../session/to-episode.ts";
import type { ForeignAgent } from "./foreign-agent.ts";
import { playForeignAgent, type AgentPlace, type PlayedAttempt } from "./play-foreign-agent.ts";
import type { TaskEndpoint } from "./task-endpoint.ts";

/** Plays attempts with an external agent. */
export interface ForeignPlayer {
  /** The value of `play` in an `EpisodeSetup`. */
  readonly play: PlayAttempt;
  /** Aborts the turns that are being sampled and stops listening. */
  close(): Promise<void>;
}

/**
 * Creates a player for an external agent. A gateway with the run's engine, renderer, sampling and
 * limits samples the turns of all attempts. One player can serve several runs.
 */
export function createForeignPlayer(agent: ForeignAgent): ForeignPlayer {
  const player = new Player(agent);
  return {
    play: async (assignment, setup, options) => await player.play(assignment, setup, options),
    close: async () => await player.close(),
  };
}

/** The gateway that serves attempts with equal settings. */
interface AttemptServer {
  /** The setup from which the gateway was created. */
  readonly setup: EpisodeSetup;
  /** Number of attempts that use the gateway now. */
  attemptCount: number;
  readonly gateway: Gateway;
  readonly fetch: typeof globalThis.fetch;
  readonly served: Promise<ServedGateway> | undefined;
}

class Player {
  readonly #agent: ForeignAgent;
  /**
   * The engine of each attempt, by session id. A run that pauses gives each attempt its own engine.
   */
  readonly #engines = new Map<string, Engine>();
  readonly #endpoints = new Map<GatewaySession, TaskEndpoint>();
  /** Callbacks by session id. Each is called when the engine holds or releases a policy call of the session. */
  readonly #holds = new Map<string, (isHeld: boolean) => void>();
  /** The gateways, newest last. An older one is closed when its last attempt ends. */
  #servers: readonly AttemptServer[] = [];
  /** The first unexpected error, which is a bug. */
  #crash: { readonly error: unknown } | undefined;

  constructor(agent: ForeignAgent) {
    this.#agent = agent;
  }

  async play(
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    options: Parameters<PlayAttempt>[2],
  ): Promise<Episode> {
    const server = this.#acquireServer(setup);
    try {
      return await this.#playIn(server, assignment, setup, options);
    } finally {
      server.attemptCount -= 1;
      await this.#closeIdle();
    }
  }

  async #playIn(
    { gateway, fetch, served }: AttemptServer,
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    { signal, interrupt, redactor }: Parameters<PlayAttempt>[2],
  ): Promise<Episode> {
    const baseUrl = (await served)?.url ?? inProcessUrl;
    const startedAtMs = setup.now();
    const { task, samplingSeed, seed } = assignment;
    const opened = await gateway.openSession({ taskId: task.id, seed: samplingSeed ?? seed });
    const session = gateway.store.byId(opened.sessionId)!;
    this.#engines.set(opened.sessionId, setup.engine);
    try {
      const place = { baseUrl, apiKey: opened.token, fetch };
      const played = await this.#attempt(assignment, setup, {
        session,
        place,
        signal,
        interrupt,
        redactor,
      });
      await gateway.close(session);
      if (this.#crash !== undefined) throw this.#crash.error;
      const episode = describe(assignment, { session, played, startedAtMs, now: setup.now });
      for (const turn of episode.turns) setup.onTurn?.(turn);
      return episode;
    } finally {
      await gateway.close(session);
      this.#engines.delete(opened.sessionId);
      this.#holds.delete(opened.sessionId);
      this.#endpoints.delete(session);
    }
  }

  async #attempt(
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    around: {
      readonly session: GatewaySession;
      readonly place: AgentPlace;
      readonly signal: AbortSignal;
      readonly interrupt: AbortSignal | undefined;
      readonly redactor: Parameters<PlayAttempt>[2]["redactor"];
    },
  ): Promise<PlayedAttempt> {
    const { session, place, signal, interrupt, redactor } = around;
    using stop = startDeadline({ ms: Infinity, parents: [signal, interrupt] });
    try {
      return await playForeignAgent(
        this.#agent,
        { assignment, setup, session, signal: stop.signal, redactor },
        {
          place,
          useEndpoint: (endpoint) => this.#endpoints.set(session, endpoint),
          useHold: (onHeld) => this.#holds.set(session.identity.sessionId, onHeld),
        },
      );
    } catch (error) {
      signal.throwIfAborted();
      if (interrupt?.aborted !== true) throw error;
      return { end: { outcome: "aborted", stopReason: "interrupted" } };
    }
  }

  async close(): Promise<void> {
    const servers = this.#servers;
    this.#servers = [];
    for (const server of servers) await closeServer(server);
  }

  /** Returns a gateway for the setup. A service and a worker may play several runs in turn or at the same time. */
  #acquireServer(setup: EpisodeSetup): AttemptServer {
    let server = this.#servers.find((one) => haveEqualSettings(one.setup, setup));
    if (server === undefined) {
      server = this.#openServer(setup);
      this.#servers = [...this.#servers, server];
    }
    server.attemptCount += 1;
    return server;
  }

  async #closeIdle(): Promise<void> {
    const newest = this.#servers.at(-1);
    const idle = this.#servers.filter((one) => one !== newest && one.attemptCount === 0);
    this.#servers = this.#servers.filter((one) => !idle.includes(one));
    for (const server of idle) {
      await closeServer(server).catch((error: unknown) => void (this.#crash ??= { error }));
    }
  }

  #openServer(setup: EpisodeSetup): AttemptServer {
    const { promptTime, sampling, limits, clock, columns, now } = setup;
    const { columnStore = memoryColumns } = setup;
    const renderer = renderAt(rendererOf(setup), promptTime);
    const engine = this.#dispatch(setup.engine);
    const onTrouble = (error: unknown): void => void (this.#crash ??= { error });
    const options = {
      engine,
      renderer,
      sampling,
      now,
      onTrouble,
      ...(clock !== undefined && { clock }),
      ...(columns !== undefined && { columns: { specs: columns, store: columnStore } }),
    };
    const gateway = new Gateway({ ...options, limits: toSessionLimits(limits) });
    const endpointOf = (session: GatewaySession) => this.#endpoints.get(session);
    const app = createGatewayApp(gateway, { opensSessions: false, checksHost: false }, endpointOf);
    const place = { host: "127.0.0.1", port: 0, opensSessions: false };
    return {
      setup,
      attemptCount: 0,
      gateway,
      fetch: async (input, init) => await app.fetch(new Request(input, init)),
      served:
        this.#agent.needsAddress === true ? serveGateway(gateway, place, endpointOf) : undefined,
    };
  }

  /** Returns an engine that forwards each request to its attempt's engine. */
  #dispatch(first: Engine): Engine {
    return {
      kind: first.kind,
      generate: async (request, options) => {
        const engine = this.#engines.get(request.sessionId);
        if (engine !== undefined) {
          let wasHeld = false;
          let isCalling = true;
          const onHeld = (isHeld: boolean): void => {
            if (!isCalling || isHeld === wasHeld) return;
            wasHeld = isHeld;
            options?.onHeld?.(isHeld);
            this.#holds.get(request.sessionId)?.(isHeld);
          };
          try {
            return await engine.generate(request, { ...options, onHeld });
          } finally {
            // The call is over, so that it is no longer held.
            onHeld(false);
            isCalling = false;
          }
        }
        const message = `Cannot sample ${request.requestId}: its attempt is over`;
        throw new RolloutError("engine/bad-request", message);
      },
      describe: async (options) => await first.describe(options),
      close: async () => {},
    };
  }
}

/** True if a gateway that was created for one setup can serve the other. */
function haveEqualSettings(one: EpisodeSetup, other: EpisodeSetup): boolean {
  const { renderer, now, clock, engine, columnStore } = one;
  return (
    renderer === other.renderer &&
    now === other.now &&
    clock === other.clock &&
    engine.kind === other.engine.kind &&
    // Each run has a store of its own.
    columnStore === other.columnStore &&
    isDeepStrictEqual(settingsOf(one), settingsOf(other))
  );
}

function settingsOf({ sampling, limits, promptTime, columns }: EpisodeSetup) {
  return { sampling, limits, promptTime: promptTime?.getTime(), columns };
}

async function closeServer({ served, gateway }: AttemptServer): Promise<void> {
  await (await served)?.[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
}

function toSessionLimits(limits: EpisodeLimits): Partial<SessionLimits> {
  const { maxTurns, maxTokensPerTurn, maxEpisodeTokens, maxContextTokens, engineTimeoutMs } =
    limits;
  return {
    maxTurns,
    maxTokensPerTurn,
    maxContextTokens,
    engineTimeoutMs,
    maxSessionTokens: maxEpisodeTokens,
    // The run has its own limits for these.
    maxRequests: Infinity,
    maxSessions: Infinity,
    idleTimeoutMs: Infinity,
  };
}

function describe(
  { task, ...assignment }: EpisodeAssignment,
  about: {
    readonly session: GatewaySession;
    readonly played: PlayedAttempt;
    readonly startedAtMs: number;
    readonly now: () => number;
  },
): Episode {
  const { session, played, startedAtMs, now } = about;
  const { rolloutId, groupId, groupIndex, sampleIndex, seed, attempt = 1 } = assignment;
  const episode = toEpisode(session, { end: played.end, atMs: now() });
  session.counters.rejected(episode.tree ?? []);
  return {
    ...episode,
    rolloutId,
    groupId,
    taskId: task.id,
    taskIndex: task.index,
    sampleIndex,
    seed,
    attempt,
    ...withoutUndefined({ groupIndex, userUsage: played.userUsage }),
    gateway: session.counters.someCounts,
    environment: task.environment,
    split: task.split,
    startedAtMs,
    durationMs: Math.max(0, now() - startedAtMs),
  };
}

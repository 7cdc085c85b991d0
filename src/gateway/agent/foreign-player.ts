import { isDeepStrictEqual } from "node:util";
import type { Engine } from "../../engine/engine.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "../../episode/episode-setup.ts";
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
import type { WorldDesk } from "./world-desk.ts";

/** Plays attempts with an agent that was written elsewhere. */
export interface ForeignPlayer {
  /** To be `play` in an `EpisodeSetup`. */
  readonly play: PlayAttempt;
  /** Gives up what is being sampled, and listens no more. */
  close(): Promise<void>;
}

/**
 * Lets an agent that was written elsewhere play the attempts of a run, or of one run after the other: a gateway
 * samples for all attempts of a run, with its engine, renderer, sampling and limits.
 */
export function createForeignPlayer(agent: ForeignAgent): ForeignPlayer {
  const player = new Player(agent);
  return {
    play: async (assignment, setup, options) => await player.play(assignment, setup, options),
    close: async () => await player.close(),
  };
}

/** What serves the attempts that are played alike, made with the first of them. */
interface Office {
  /** The setup that it was made for. */
  readonly setup: EpisodeSetup;
  /** Attempts that it serves now. */
  attemptCount: number;
  readonly gateway: Gateway;
  readonly fetch: typeof globalThis.fetch;
  readonly served: Promise<ServedGateway> | undefined;
}

class Player {
  readonly #agent: ForeignAgent;
  /** The engine of each attempt, by its session: a run that pauses has one of its own. */
  readonly #engines = new Map<string, Engine>();
  readonly #desks = new Map<GatewaySession, WorldDesk>();
  /** Who is told when a session's policy calls are held. */
  readonly #holds = new Map<string, (isHeld: boolean) => void>();
  /** The newest last: one that serves nothing any more is closed where it is not that. */
  #offices: readonly Office[] = [];
  /** Our own bug, as far as one was met. */
  #crash: { readonly error: unknown } | undefined;

  constructor(agent: ForeignAgent) {
    this.#agent = agent;
  }

  async play(
    assignment: EpisodeAssignment,
    setup: EpisodeSetup,
    options: Parameters<PlayAttempt>[2],
  ): Promise<Episode> {
    const office = this.#enterOffice(setup);
    try {
      return await this.#playIn(office, assignment, setup, options);
    } finally {
      office.attemptCount -= 1;
      await this.#closeIdle();
    }
  }

  async #playIn(
    { gateway, fetch, served }: Office,
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
      this.#desks.delete(session);
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
          useDesk: (desk) => this.#desks.set(session, desk),
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
    const offices = this.#offices;
    this.#offices = [];
    for (const office of offices) await closeOffice(office);
  }

  /** A service and a worker play for one run after the other, and for several at once. */
  #enterOffice(setup: EpisodeSetup): Office {
    let office = this.#offices.find((one) => playsAlike(one.setup, setup));
    if (office === undefined) {
      office = this.#openOffice(setup);
      this.#offices = [...this.#offices, office];
    }
    office.attemptCount += 1;
    return office;
  }

  async #closeIdle(): Promise<void> {
    const newest = this.#offices.at(-1);
    const idle = this.#offices.filter((one) => one !== newest && one.attemptCount === 0);
    this.#offices = this.#offices.filter((one) => !idle.includes(one));
    for (const office of idle) {
      await closeOffice(office).catch((error: unknown) => void (this.#crash ??= { error }));
    }
  }

  #openOffice(setup: EpisodeSetup): Office {
    const { promptTime, sampling, limits, clock, now } = setup;
    const renderer = renderAt(setup.renderer, promptTime);
    const engine = this.#dispatch(setup.engine);
    const onTrouble = (error: unknown): void => void (this.#crash ??= { error });
    const options = {
      engine,
      renderer,
      sampling,
      now,
      onTrouble,
      ...(clock !== undefined && { clock }),
    };
    const gateway = new Gateway({ ...options, limits: toSessionLimits(limits) });
    const deskOf = (session: GatewaySession) => this.#desks.get(session);
    const app = createGatewayApp(gateway, { opensSessions: false, checksHost: false }, deskOf);
    const place = { host: "127.0.0.1", port: 0, opensSessions: false };
    return {
      setup,
      attemptCount: 0,
      gateway,
      fetch: async (input, init) => await app.fetch(new Request(input, init)),
      served: this.#agent.needsAddress === true ? serveGateway(gateway, place, deskOf) : undefined,
    };
  }

  /** Samples with the engine of the attempt that asks. */
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
            // An engine that never said that it goes on holds nothing but its own call.
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

/** Whether what an office takes of its setup is the same in both. */
function playsAlike(one: EpisodeSetup, other: EpisodeSetup): boolean {
  const { renderer, now, clock, engine } = one;
  return (
    renderer === other.renderer &&
    now === other.now &&
    clock === other.clock &&
    engine.kind === other.engine.kind &&
    isDeepStrictEqual(termsOf(one), termsOf(other))
  );
}

function termsOf({ sampling, limits, promptTime }: EpisodeSetup) {
  return { sampling, limits, promptTime: promptTime?.getTime() };
}

async function closeOffice({ served, gateway }: Office): Promise<void> {
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
    // A run bounds these itself.
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
    environment: task.environment,
    split: task.split,
    startedAtMs,
    durationMs: Math.max(0, now() - startedAtMs),
  };
}

import type { Engine, SamplingParameters } from "../engine/engine.ts";
import type { Episode, TreeTurn, TurnRecord } from "../episode/episode.ts";
import { GatewayCounters, warningOf, type GatewayCounts } from "../episode/gateway-counters.ts";
import { describeError, RolloutError, UsageError, type Failure } from "../errors.ts";
import { systemClock, type Clock } from "../async/clock.ts";
import { startDeadline, withDeadline } from "../async/deadline.ts";
import type { Message } from "../message.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { episodeSamples } from "../run/folder/episode-samples.ts";
import { rewardFault } from "./session/reward-fault.ts";
import type { Sample } from "../trajectory/sample.ts";
import {
  answerTurn,
  placeAndRender,
  type ClientRequest,
  type SessionColumns,
  type TurnServices,
} from "./answer-turn.ts";
import { ClientError } from "./client-error.ts";
import type { RequestedTurn } from "./conversation.ts";
import type { GatewayDialect } from "./dialects/dialect.ts";
import { labelsOf } from "./lineage/client-labels.ts";
import { mintId, type MintId } from "./mint-id.ts";
import { PauseGate } from "./pause-gate.ts";
import type { GatewayTurn } from "./session/gateway-turn.ts";
import type { RecognisedBody } from "./session/recent-bodies.ts";
import { ReplyFeed } from "./session/reply-feed.ts";
import { requestKey } from "./session/reply-cache.ts";
import { defaultSessionLimits, type SessionLimits } from "./session/session-limits.ts";
import type { SessionJournal } from "./session/session-journal.ts";
import { SessionStore, type SessionRequest } from "./session/session-store.ts";
import type { GatewaySession, SessionIdentity, SessionReward } from "./session/session.ts";
import { toEpisode, type SessionEnd } from "./session/to-episode.ts";
import type { RowChoice } from "./tree/collect-rows.ts";
import type { Strictness } from "./tree/match-turn.ts";
import { ignoredText } from "./tree/ignored-text.ts";
import { defaultIgnore } from "./tree/message-keys.ts";
import type { TurnNode } from "./tree/turn-node.ts";
import { PromptBuilder } from "./turn/prompt-builder.ts";
import { replyFormats } from "./turn/reply-formats.ts";

/** A session as a scorer receives it. JSON-able. */
export interface ScoredSession extends Omit<SessionIdentity, "tokenHash" | "ownerHash"> {
  /** The first conversation of the session, up to its newest turn. */
  readonly messages: readonly Message[];
  readonly turnCount: number;
  /** All turns in sampling order. A scorer's `turnRewards` have an entry for each. */
  readonly tree: readonly TreeTurn[];
}

/** Scores a finished session that has no reward. */
export type SessionScorer = (
  session: ScoredSession,
  options: { readonly signal: AbortSignal },
) => Promise<SessionReward> | SessionReward;

/** Settings of a gateway. */
export interface GatewayOptions {
  readonly engine: Engine;
  readonly renderer: Renderer;
  /** Sampling parameters. Default: the engine's own. */
  readonly sampling?: SamplingParameters;
  /**
   * The source of the sampling parameters. Default `pin`: the gateway's, regardless of the request.
   */
  readonly clientSampling?: "pin" | "honour";
  /** The treatment of unsupported features. Default `ignore`: they are counted. */
  readonly constraints?: "ignore" | "refuse";
  /** The strictness of comparing a returned turn with the sampled one. Default `calls`. */
  readonly strictness?: Strictness;
  /**
   * Patterns of text that is removed from messages before they are compared. Each must be free of
   * back-references, so that it runs in linear time. Default: Claude Code's billing line.
   */
  readonly ignore?: readonly RegExp[];
  /** The side columns of each turn, and the store of their bytes. Default: none. */
  readonly columns?: SessionColumns;
  /** Names of the trained models. Turns of other models are kept but not trained. Default all. */
  readonly policyModels?: readonly string[];
  readonly rows?: RowChoice;
  readonly limits?: Partial<SessionLimits>;
  /** Longest wait of a request while the gateway is paused, in milliseconds. Default 5 minutes. */
  readonly holdMs?: number;
  readonly scorer?: SessionScorer;
  /** Time limit of the scorer, in milliseconds. Default one minute. */
  readonly scoreTimeoutMs?: number;
  /** Called at the end of each turn, with its number of sampled tokens and its duration. */
  readonly onTurn?: (turn: Pick<TurnRecord, "sampledTokenCount" | "engineMs">) => void;
  /** Receives each finished session's episode. Resolves once the episode is on disk. */
  readonly onEpisode?: (episode: Episode) => Promise<void>;
  /** Receives unexpected errors, which are bugs of the gateway. Default: they are dropped. */
  readonly onTrouble?: (error: unknown) => void;
  /**
   * Receives failures of the engine, the tokenizer or the disk. Clients receive only the code.
   * Default: they are dropped.
   */
  readonly onFailure?: (error: RolloutError | UsageError) => void;
  readonly clock?: Clock;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  readonly mint?: MintId;
}

/** A session's id and its two keys. */
export interface OpenedSession {
  readonly sessionId: string;
  /** The agent's API key. It permits sampling only. */
  readonly token: string;
  /** The key that scores, shows and ends the session. Keep it from the agent. */
  readonly ownerToken: string;
}

/** Answers agents' requests and keeps the sampled turns. */
export class Gateway implements AsyncDisposable {
  readonly #options: GatewayOptions;
  readonly #services: TurnServices;
  readonly #limits: SessionLimits;
  readonly #counters = new GatewayCounters();
  /** Counts that the journal does not have yet. */
  #unwritten = new GatewayCounters();
  readonly #gate: PauseGate;
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #running = new Map<GatewaySession, Set<Promise<unknown>>>();
  #activeCount = 0;
  #journal: SessionJournal | undefined;
  #syncColumns: (() => Promise<void>) | undefined;
  #stopIdleCheck: (() => void) | undefined;
  readonly store: SessionStore;

  /**
   * @param contextLength - Maximum of prompt and output together, in tokens.
   * @throws UsageError if no parser can read the turns of the renderer's model.
   */
  constructor(options: GatewayOptions, contextLength = Infinity) {
    const { engine, renderer, clock = systemClock, now = Date.now } = options;
    this.#options = options;
    this.#clock = clock;
    this.#now = now;
    this.#limits = {
      ...defaultSessionLimits,
      maxContextTokens: contextLength,
      ...options.limits,
    };
    this.#gate = new PauseGate(options.holdMs ?? 5 * 60_000, clock);
    const rules = {
      ignore: options.ignore?.map(ignoredText) ?? defaultIgnore,
      strictness: options.strictness ?? "calls",
    };
    this.store = new SessionStore({
      rules,
      limits: this.#limits,
      counters: { add: (counts) => this.#count(counts) },
      clock,
      now,
    });
    this.#services = {
      engine,
      renderer,
      clock,
      now,
      limits: this.#limits,
      builder: new PromptBuilder(renderer),
      formats: replyFormats(renderer),
      sampling: options.sampling ?? {},
      clientSampling: options.clientSampling ?? "pin",
      constraints: options.constraints ?? "ignore",
      ...(options.policyModels !== undefined && { policyModels: options.policyModels }),
      ...(options.columns !== undefined && { columns: options.columns }),
      mint: options.mint ?? mintId,
      onFailure: (error) => this.#options.onFailure?.(error),
      onTurn: (turn) => this.#options.onTurn?.(turn),
      whenOpen: (signal) => this.#gate.whenOpen(signal),
      journal: async (...turn) => {
        // A line names columns by hash, so their bytes come first.
        await this.#syncColumns?.();
        await this.#journal?.turn(...turn, this.#takeUnwritten());
      },
    };
    this.#watchIdle();
  }

  /**
   * Sets the journal for all later events, and adds the counts that the journal already has. Call it before the first
   * request.
   */
  useJournal(
    journal: SessionJournal,
    { syncColumns }: { readonly syncColumns?: (() => Promise<void>) | undefined } = {},
  ): void {
    this.#journal = journal;
    this.#syncColumns = syncColumns;
    this.#counters.add(journal.counts);
  }

  #count(counts: Partial<GatewayCounts>): void {
    this.#counters.add(counts);
    this.#unwritten.add(counts);
  }

  #takeUnwritten(): Partial<GatewayCounts> {
    const { someCounts } = this.#unwritten;
    this.#unwritten = new GatewayCounters();
    return someCounts;
  }

  /** Starts writing the counts since the last ones in the journal. */
  #writeCounts(): void {
    const counts = this.#takeUnwritten();
    if (Object.keys(counts).length === 0) return;
    void this.#journal?.counted(counts).catch((error: unknown) => this.#report(error));
  }

  get counts(): GatewayCounts & { readonly openSessionCount: number; readonly isPaused: boolean } {
    const { openCount: openSessionCount } = this.store;
    return { ...this.#counters.counts, openSessionCount, isPaused: this.#gate.isPaused };
  }

  /** See `warningOf()`. */
  get warning(): string | undefined {
    return warningOf(this.#counters.counts);
  }

  pause(): void {
    this.#gate.pause();
  }

  resume(): void {
    this.#gate.resume();
  }

  /**
   * Opens a session, and returns its id and its two keys.
   *
   * @throws ClientError as `SessionStore.create()` does.
   */
  async openSession(request: SessionRequest = {}): Promise<OpenedSession> {
    const { session, token, ownerToken } = this.store.create(request);
    await this.#journal?.opened(session);
    return { sessionId: session.identity.sessionId, token, ownerToken };
  }

  /**
   * Opens a session for a key that an agent chose itself. Such a session has no owner key.
   *
   * @throws ClientError as `SessionStore.create()` does.
   */
  async openWithKey(key: string): Promise<GatewaySession> {
    const session = this.store.createWithKey(key);
    await this.#journal?.opened(session);
    return session;
  }

  /**
   * Answers a request for a turn.
   *
   * @returns the reply's feed, which grows while the turn is sampled.
   * @throws ClientError if the request cannot be answered.
   */
  async ask(
    session: GatewaySession,
    dialect: GatewayDialect,
    request: { readonly headers: Headers; readonly body: Uint8Array },
  ): Promise<ReplyFeed> {
    const body = session.bodies.recognise(dialect, request.body);
    const key = requestKey(dialect.name, request.headers, body.hash);
    const replay = session.retries.find(request.headers, key);
    if (replay !== undefined) {
      session.counters.replayed();
      this.#writeCounts();
      return replay;
    }
    if (this.#activeCount >= this.#limits.maxRequests) {
      const message = `${this.#activeCount} requests are in progress`;
      throw new ClientError("overloaded", message, { retryAfterS: 1 });
    }
    const requested = this.#read(session, dialect, body);
    const abandoned = new AbortController();
    const kept = this.#openFeed(session, { key, bodyHash: body.hash }, abandoned);
    const labels = labelsOf(request.headers, requested);
    this.#start(session, kept, { dialect, requested, labels, signal: abandoned.signal });
    return kept.feed;
  }

  /**
   * Creates a feed that also serves retries of the request. The feed is kept longer than the request, so it has no
   * reference to the request.
   */
  #openFeed(
    session: GatewaySession,
    { key, bodyHash }: { readonly key: string; readonly bodyHash: string },
    abandoned: AbortController,
  ): KeptReply {
    let node: TurnNode<GatewayTurn> | undefined;
    let isDelivered = false;
    const deliver = (): void => {
      if (node === undefined || !isDelivered) return;
      session.tree.setDelivered(node, true);
      void this.#journal?.delivered(session, node).catch((error: unknown) => this.#report(error));
    };
    const feed: ReplyFeed = new ReplyFeed({
      onDelivered: () => {
        isDelivered = true;
        deliver();
      },
      onAbandoned: () => {
        session.counters.undelivered();
        this.#writeCounts();
        if (!feed.isDone) session.retries.forget(key, feed);
        abandoned.abort(new DOMException("The client is gone", "AbortError"));
      },
    });
    session.retries.keep(key, feed);
    return {
      feed,
      settle: (sampled) => {
        node = sampled;
        if (node !== undefined) return deliver();
        // A request without a turn may be sent again, and no turn keeps its body's text in memory.
        session.retries.forget(key, feed);
        session.bodies.forget(bodyHash);
      },
    };
  }

  #start(session: GatewaySession, { feed, settle }: KeptReply, turn: ClientRequest): void {
    this.#run(session, async () => {
      let node: TurnNode<GatewayTurn> | undefined;
      try {
        node = await answerTurn(this.#services, session, turn, feed);
      } catch (error) {
        this.#report(error);
      }
      this.#writeCounts();
      settle(node);
    });
  }

  /** Returns the number of prompt tokens that a request for a turn would have. */
  async countTokens(
    session: GatewaySession,
    dialect: GatewayDialect,
    body: Uint8Array,
  ): Promise<number> {
    const found = session.bodies.recognise(dialect, body);
    const requested = this.#read(session, dialect, found, { keeps: false });
    const { built } = await placeAndRender(this.#services, session, requested);
    return built.recorder.length;
  }

  /**
   * Reads the body of a request for a turn. Counts a body that cannot be read.
   *
   * @throws ClientError `invalid` if the body cannot be read.
   */
  #read(
    session: GatewaySession,
    dialect: GatewayDialect,
    body: RecognisedBody,
    options?: { readonly keeps: boolean },
  ): RequestedTurn {
    try {
      const requested = session.bodies.read(dialect, body, session.memory, options);
      if (requested.messages.length > 0) return requested;
      throw new ClientError("invalid", "Cannot read the body: there are no messages");
    } catch (error) {
      const refusal = unreadable(error);
      if (refusal === undefined) throw error;
      this.countRefusal(session, refusal);
      throw refusal;
    }
  }

  /** Counts a request of the session that was refused as wrong. */
  countRefusal(session: GatewaySession, error: unknown): void {
    if (session.countRefusal(error)) this.#writeCounts();
  }

  /**
   * Sets the reward of an open session, and records it.
   *
   * @throws ClientError `invalid` for an invalid reward, `finished` if the session is over.
   */
  async reward(session: GatewaySession, reward: SessionReward): Promise<void> {
    requireReward(reward);
    requireOpen(session);
    session.reward = reward;
    await this.#journal?.reward(session, reward);
  }

  /**
   * Ends a session: aborts the turns that are being sampled, scores the session and emits its
   * episode.
   *
   * @throws ClientError as `reward()` does, and `invalid` for rewards of turns while turns are sampled.
   */
  async finish(
    session: GatewaySession,
    end: { readonly reward?: SessionReward; readonly failure?: Failure } = {},
  ): Promise<Episode> {
    if (end.reward !== undefined) requireReward(end.reward, this.#turnsAtEnd(session, end.reward));
    requireOpen(session);
    // Set before the first await, so that a second request cannot end the session twice.
    session.finish();
    if (end.reward !== undefined) {
      session.reward = end.reward;
      // After a crash, a session with rewards of turns must not continue: its end is their only entry.
      if (end.reward.turnRewards === undefined) await this.#journal?.reward(session, end.reward);
    }
    await this.#settle(session);
    const scored = end.failure === undefined ? await this.#score(session) : end;
    return await this.#end(session, { ...scored, atMs: this.#now() });
  }

  /** Returns the session's turns at its end, to which `turnRewards` apply; none without `turnRewards`. */
  #turnsAtEnd(session: GatewaySession, { turnRewards }: SessionReward): readonly TreeTurn[] {
    if (turnRewards === undefined) return [];
    if (session.activeCount > 0) {
      const message = `Cannot use turnRewards: ${session.activeCount} requests of the session are under way, expected none`;
      throw new ClientError("invalid", message, { place: "turnRewards" });
    }
    return this.#treeOf(session);
  }

  #treeOf(session: GatewaySession): readonly TreeTurn[] {
    return toEpisode(session, { atMs: this.#now() }, this.#options.rows).tree ?? [];
  }

  /**
   * Ends a session again as an earlier process ended it, because its episode is missing from disk.
   */
  async finishAgain(session: GatewaySession, end: SessionEnd): Promise<void> {
    session.finish();
    await this.#end(session, end);
  }

  async #end(session: GatewaySession, end: SessionEnd): Promise<Episode> {
    const episode = toEpisode(session, end, this.#options.rows);
    await this.#options.onEpisode?.(episode);
    await this.#journal?.finished(session, end);
    session.counters.rejected(episode.tree ?? []);
    this.#writeCounts();
    this.store.remove(session);
    return episode;
  }

  /**
   * Closes a session without an episode, a score or a journal entry. The caller records the
   * attempt.
   */
  async close(session: GatewaySession): Promise<void> {
    session.finish();
    await this.#settle(session);
    this.store.remove(session);
  }

  /** Returns the training rows of a session's turns so far. */
  samples(session: GatewaySession): readonly Sample[] {
    const end = {
      ...(session.reward !== undefined && { reward: session.reward }),
      atMs: this.#now(),
    };
    return episodeSamples(toEpisode(session, end, this.#options.rows));
  }

  /** Aborts the turns that are being sampled. The journal keeps the sessions open. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopIdleCheck?.();
    for (const session of this.store.open) session.finish();
    await Promise.allSettled([...this.#running.values()].flatMap((each) => [...each]));
    await this.#journal?.[Symbol.asyncDispose]();
  }

  #run(session: GatewaySession, work: () => Promise<void>): void {
    const running = this.#running.get(session) ?? new Set();
    this.#running.set(session, running);
    this.#activeCount += 1;
    const task = work().finally(() => {
      this.#activeCount -= 1;
      running.delete(task);
      if (running.size === 0) this.#running.delete(session);
    });
    running.add(task);
  }

  /** Waits until none of the session's requests is running. */
  async #settle(session: GatewaySession): Promise<void> {
    const running = this.#running.get(session);
    if (running !== undefined) await Promise.allSettled(running);
  }

  async #score(session: GatewaySession): Promise<{ reward?: SessionReward; failure?: Failure }> {
    const { scorer, scoreTimeoutMs = 60_000 } = this.#options;
    if (session.reward !== undefined) return { reward: session.reward };
    if (scorer === undefined) return {};
    const what = `score session ${session.identity.sessionId}`;
    const scored = scoredSession(session, this.#treeOf(session));
    using deadline = startDeadline({ ms: Infinity, parents: [] });
    try {
      const reward = await withDeadline(async (signal) => await scorer(scored, { signal }), {
        ms: scoreTimeoutMs,
        clock: this.#clock,
        signal: deadline.signal,
        onLate: () => {
          throw new DOMException(`no answer within ${scoreTimeoutMs} ms`, "TimeoutError");
        },
      });
      const fault = rewardFault(reward, scored.tree);
      if (fault === undefined) return { reward };
      const message = `Cannot ${what}: the scorer's reward cannot be used: ${fault.why}`;
      return { failure: { party: "grader", code: "grader/bad-reply", message } };
    } catch (error) {
      this.#report(error);
      const isLate = error instanceof DOMException && error.name === "TimeoutError";
      const message = `Cannot ${what}: ${describeError(error)}`;
      const code = isLate ? "grader/timeout" : "grader/exception";
      return { failure: { party: "grader", code, message } };
    }
  }

  #watchIdle(): void {
    const { idleTimeoutMs } = this.#limits;
    if (idleTimeoutMs === Infinity) return;
    const period = Math.min(60_000, idleTimeoutMs);
    this.#stopIdleCheck = this.#clock.after(period, () => {
      void this.#endIdle().finally(() => this.#watchIdle());
    });
  }

  async #endIdle(): Promise<void> {
    for (const session of [...this.store.open].filter(({ isIdle }) => isIdle)) {
      const message = `Session ${session.identity.sessionId} was idle too long without being finished`;
      const failure = { party: "agent", code: "agent/idle", message } as const;
      await this.finish(session, session.reward === undefined ? { failure } : {}).catch(
        (error: unknown) => this.#report(error),
      );
    }
  }

  /** Reports an outage that occurred outside of a turn. */
  reportOutage(error: unknown): void {
    if (error instanceof RolloutError || error instanceof UsageError) {
      this.#options.onFailure?.(error);
    }
  }

  #report(error: unknown): void {
    this.#options.onTrouble?.(error);
  }
}

/** Returns the error reply for a body that cannot be read, or `undefined` for another error. */
function unreadable(error: unknown): ClientError | undefined {
  if (error instanceof ClientError) return error;
  if (!(error instanceof RangeError)) return undefined;
  const message = "Cannot read the body: it is nested too deeply";
  return new ClientError("invalid", message, { cause: error });
}

/** A reply's feed, and the function to call with its turn, or with `undefined` after a failure. */
interface KeptReply {
  readonly feed: ReplyFeed;
  readonly settle: (node: TurnNode<GatewayTurn> | undefined) => void;
}

function requireReward(reward: SessionReward, tree?: readonly TreeTurn[]): void {
  const fault = rewardFault(reward, tree);
  if (fault === undefined) return;
  const message = `Cannot use the reward: ${fault.why}`;
  throw new ClientError("invalid", message, { place: fault.place });
}

function requireOpen({ isFinished }: GatewaySession): void {
  if (isFinished) throw new ClientError("finished", "This session is finished");
}

function scoredSession(session: GatewaySession, tree: readonly TreeTurn[]): ScoredSession {
  const { tokenHash: _sampling, ownerHash: _owner, ...identity } = session.identity;
  const { messages, counts } = toEpisode(session, { atMs: identity.openedAtMs }, "main");
  return { ...identity, messages, turnCount: counts.turnCount, tree };
}

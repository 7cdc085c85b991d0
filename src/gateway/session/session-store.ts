import { randomBytes } from "node:crypto";
import type { Clock } from "../../async/clock.ts";
import type { GatewayCounters } from "../../episode/gateway-counters.ts";
import { ClientError } from "../client-error.ts";
import type { TreeRules } from "../tree/session-tree.ts";
import type { SessionLimits } from "./session-limits.ts";
import { FieldCache } from "./field-cache.ts";
import { ToolCache } from "./tool-cache.ts";
import { createOwnerKey, createSamplingKey, hashToken } from "./session-keys.ts";
import { GatewaySession, type SessionIdentity } from "./session.ts";

/** The settings of a new session. */
export interface SessionRequest {
  /** Sessions with the same task id are a group. Default: a new task. */
  readonly taskId?: string;
  readonly groupId?: string;
  /** 0-based index in the group. Default: the next free one. */
  readonly sampleIndex?: number;
  /** The seed of the session. Default: the number of sessions before it. */
  readonly seed?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** The task and index of an attempt. */
type SessionPlace = Pick<SessionIdentity, "taskId" | "taskIndex" | "sampleIndex">;

/** Maximum number of finished sessions to remember. */
const keptFinished = 100_000;

/** Settings that all sessions share. */
interface StoreOptions {
  readonly rules: TreeRules;
  readonly limits: SessionLimits;
  /** Counters of the requests and turns of all sessions. */
  readonly counters: Pick<GatewayCounters, "add">;
  readonly clock: Pick<Clock, "now">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Refuses an empty name.
 *
 * @throws ClientError `invalid` for an empty name.
 */
function requireName(name: string | undefined, place: string, otherwise: string): void {
  if (name === undefined || name.trim() !== "") return;
  const message = `Cannot use an empty ${place}: give it a name, or leave it out for ${otherwise}`;
  throw new ClientError("invalid", message, { place });
}

/** The open sessions of a gateway, and the keys of finished ones. */
export class SessionStore {
  readonly #options: StoreOptions;
  readonly #byHash = new Map<string, GatewaySession>();
  readonly #byId = new Map<string, GatewaySession>();
  /** Session ids by hash of the sampling key, for finished sessions. */
  readonly #finished = new Map<string, string>();
  /** Hashes of owner keys by session id, for finished sessions. */
  readonly #finishedOwners = new Map<string, string | undefined>();
  readonly #taskIndexes = new Map<string, number>();
  readonly #nextSamples = new Map<string, number>();
  readonly #caches = { tools: new ToolCache(), fields: new FieldCache() };
  #nextTaskIndex = 0;
  #openedCount = 0;

  constructor(options: StoreOptions) {
    this.#options = options;
  }

  get open(): Iterable<GatewaySession> {
    return this.#byId.values();
  }

  get openCount(): number {
    return this.#byId.size;
  }

  get openedCount(): number {
    return this.#openedCount;
  }

  /**
   * Opens a session and creates its keys.
   *
   * @throws ClientError `overloaded` if too many sessions are open, `invalid` if the index is taken
   *   or a name is empty.
   */
  create(request: SessionRequest): {
    readonly session: GatewaySession;
    readonly token: string;
    readonly ownerToken: string;
  } {
    const [token, ownerToken] = [createSamplingKey(), createOwnerKey()];
    const hashes = { tokenHash: hashToken(token), ownerHash: hashToken(ownerToken) };
    return { session: this.#open(request, hashes), token, ownerToken };
  }

  /**
   * Opens a session for a key that an agent chose itself. It has no owner key.
   *
   * @throws ClientError `overloaded` if too many sessions are open.
   */
  createWithKey(token: string): GatewaySession {
    return this.#open({}, { tokenHash: hashToken(token) });
  }

  #open(
    request: SessionRequest,
    hashes: Pick<SessionIdentity, "tokenHash" | "ownerHash">,
  ): GatewaySession {
    requireName(request.taskId, "taskId", "a task of its own");
    requireName(request.groupId, "groupId", "the group of its task");
    const { maxSessions } = this.#options.limits;
    if (this.#byId.size >= maxSessions) {
      throw new ClientError("overloaded", `${maxSessions} sessions are open`, { retryAfterS: 10 });
    }
    const number = this.#openedCount;
    const taskId = request.taskId ?? this.#freeTaskId(number);
    const identity: SessionIdentity = {
      sessionId: `s${number}-${randomBytes(6).toString("hex")}`,
      ...hashes,
      taskId,
      taskIndex: this.#taskIndexes.get(taskId) ?? this.#nextTaskIndex,
      groupId: request.groupId ?? taskId,
      sampleIndex: request.sampleIndex ?? this.#nextSamples.get(taskId) ?? 0,
      seed: request.seed ?? number,
      metadata: request.metadata ?? {},
      openedAtMs: this.#options.now(),
    };
    if (identity.sampleIndex < (this.#nextSamples.get(taskId) ?? 0)) {
      const message = `Attempt ${identity.sampleIndex} at ${taskId} already exists`;
      throw new ClientError("invalid", message, { place: "sampleIndex" });
    }
    return this.restore(identity);
  }

  /**
   * Returns an unused task id. Sessions that were lost with a damaged journal may have used the
   * next number.
   */
  #freeTaskId(number: number): string {
    for (let free = number; ; free++) {
      const taskId = `session-${free}`;
      if (!this.#taskIndexes.has(taskId)) return taskId;
    }
  }

  /** Restores a session of an earlier process. */
  restore(identity: SessionIdentity): GatewaySession {
    const session = new GatewaySession(identity, { ...this.#options, ...this.#caches });
    this.#register(identity);
    this.#byHash.set(identity.tokenHash, session);
    this.#byId.set(identity.sessionId, session);
    return session;
  }

  /** Registers a session that an earlier process finished. */
  restoreFinished(identity: SessionIdentity): void {
    this.#register(identity);
    this.#keepFinished(identity);
  }

  /** Registers an episode that has no known session, so that no other session gets its index. */
  restoreWritten(place: SessionPlace): void {
    this.#register(place);
  }

  #keepFinished({ tokenHash, ownerHash, sessionId }: SessionIdentity): void {
    this.#finished.set(tokenHash, sessionId);
    this.#finishedOwners.set(sessionId, ownerHash);
    if (this.#finished.size <= keptFinished) return;
    for (const [oldest, oldestId] of this.#finished) {
      this.#finished.delete(oldest);
      this.#finishedOwners.delete(oldestId);
      break;
    }
  }

  #register({ taskId, taskIndex, sampleIndex }: SessionPlace): void {
    this.#openedCount += 1;
    this.#taskIndexes.set(taskId, taskIndex);
    this.#nextTaskIndex = Math.max(this.#nextTaskIndex, taskIndex + 1);
    const next = this.#nextSamples.get(taskId) ?? 0;
    this.#nextSamples.set(taskId, Math.max(next, sampleIndex + 1));
  }

  /**
   * Finds the open session of a sampling key.
   *
   * @throws ClientError `finished` if the session is over.
   */
  byToken(token: string): GatewaySession | undefined {
    const hash = hashToken(token);
    if (this.#finished.has(hash)) throw finishedError();
    return this.#byHash.get(hash);
  }

  /** True if the key is the sampling key of an open or finished session. */
  isSamplingKey(token: string): boolean {
    const hash = hashToken(token);
    return this.#finished.has(hash) || this.#byHash.has(hash);
  }

  /** Returns the hash of a session's owner key, or `undefined` if it has none. */
  ownerHashOf(sessionId: string): string | undefined {
    return this.#byId.get(sessionId)?.identity.ownerHash ?? this.#finishedOwners.get(sessionId);
  }

  byId(sessionId: string): GatewaySession | undefined {
    return this.#byId.get(sessionId);
  }

  /**
   * Returns the open session with an id.
   *
   * @throws ClientError `finished` if the session is over, `not-found` if the id is unknown.
   */
  requireById(sessionId: string): GatewaySession {
    const session = this.#byId.get(sessionId);
    if (session !== undefined) return session;
    if (this.#finishedOwners.has(sessionId)) throw finishedError();
    throw new ClientError("not-found", "No open session has this id");
  }

  /** Removes a session and remembers its keys as finished. */
  remove({ identity }: GatewaySession): void {
    this.#byId.delete(identity.sessionId);
    this.#byHash.delete(identity.tokenHash);
    this.#keepFinished(identity);
  }
}

/** Omits the session's id, because the agent reads the message. */
function finishedError(): ClientError {
  return new ClientError("finished", "This session is finished");
}

import { randomBytes } from "node:crypto";
import type { Clock } from "../../async/clock.ts";
import { ClientError } from "../client-error.ts";
import type { TreeRules } from "../tree/session-tree.ts";
import type { SessionLimits } from "./session-limits.ts";
import { FieldCache } from "./field-cache.ts";
import { ToolCache } from "./tool-cache.ts";
import { createOwnerKey, createSamplingKey, hashToken } from "./session-keys.ts";
import { GatewaySession, type SessionIdentity } from "./session.ts";

/** What a session may be opened for; what is absent is chosen. */
export interface SessionWish {
  /** Sessions of one task are one group. Default: a task of its own. */
  readonly taskId?: string;
  readonly groupId?: string;
  /** 0-based place within the group. Default the next that is free. */
  readonly sampleIndex?: number;
  /** Default the number of sessions before it. */
  readonly seed?: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Where an attempt stands among the others. */
type SessionPlace = Pick<SessionIdentity, "taskId" | "taskIndex" | "sampleIndex">;

/** So many finished sessions are told from those that never were. */
const keptFinished = 100_000;

/** What the sessions of a gateway are kept by. */
interface StoreOptions {
  readonly rules: TreeRules;
  readonly limits: SessionLimits;
  readonly clock: Pick<Clock, "now">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** @throws ClientError `invalid` for a name that nobody could tell from none. */
function requireName(name: string | undefined, place: string, otherwise: string): void {
  if (name === undefined || name.trim() !== "") return;
  const message = `Cannot use an empty ${place}: give it a name, or leave it out for ${otherwise}`;
  throw new ClientError("invalid", message, { place });
}

/** The sessions of a gateway that are open, and what is left of those that are not. */
export class SessionStore {
  readonly #options: StoreOptions;
  readonly #byHash = new Map<string, GatewaySession>();
  readonly #byId = new Map<string, GatewaySession>();
  /** Ids of sessions that are over, by the hashes of their sampling keys. */
  readonly #finished = new Map<string, string>();
  /** The hashes of the owners' keys of sessions that are over, by the sessions' ids. */
  readonly #finishedOwners = new Map<string, string | undefined>();
  readonly #taskIndexes = new Map<string, number>();
  readonly #nextSamples = new Map<string, number>();
  readonly #books = { tools: new ToolCache(), fields: new FieldCache() };
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
   * Opens a session and makes its keys.
   *
   * @throws ClientError `overloaded` where too many are open, `invalid` for a place that is taken
   *   and for names without a letter.
   */
  create(wish: SessionWish): {
    readonly session: GatewaySession;
    readonly token: string;
    readonly ownerToken: string;
  } {
    const [token, ownerToken] = [createSamplingKey(), createOwnerKey()];
    const hashes = { tokenHash: hashToken(token), ownerHash: hashToken(ownerToken) };
    return { session: this.#open(wish, hashes), token, ownerToken };
  }

  /**
   * Opens a session for a key that an agent chose itself. It has no owner's key.
   *
   * @throws ClientError `overloaded` where too many are open.
   */
  createWithKey(token: string): GatewaySession {
    return this.#open({}, { tokenHash: hashToken(token) });
  }

  #open(
    wish: SessionWish,
    hashes: Pick<SessionIdentity, "tokenHash" | "ownerHash">,
  ): GatewaySession {
    requireName(wish.taskId, "taskId", "a task of its own");
    requireName(wish.groupId, "groupId", "the group of its task");
    const { maxSessions } = this.#options.limits;
    if (this.#byId.size >= maxSessions) {
      throw new ClientError("overloaded", `${maxSessions} sessions are open`, { retryAfterS: 10 });
    }
    const number = this.#openedCount;
    const taskId = wish.taskId ?? this.#freeTaskId(number);
    const identity: SessionIdentity = {
      sessionId: `s${number}-${randomBytes(6).toString("hex")}`,
      ...hashes,
      taskId,
      taskIndex: this.#taskIndexes.get(taskId) ?? this.#nextTaskIndex,
      groupId: wish.groupId ?? taskId,
      sampleIndex: wish.sampleIndex ?? this.#nextSamples.get(taskId) ?? 0,
      seed: wish.seed ?? number,
      metadata: wish.metadata ?? {},
      openedAtMs: this.#options.now(),
    };
    if (identity.sampleIndex < (this.#nextSamples.get(taskId) ?? 0)) {
      const message = `Attempt ${identity.sampleIndex} at ${taskId} was begun already`;
      throw new ClientError("invalid", message, { place: "sampleIndex" });
    }
    return this.restore(identity);
  }

  /** The name of a task of its own: sessions that cannot be read any more may have had the next one. */
  #freeTaskId(number: number): string {
    for (let free = number; ; free++) {
      const taskId = `session-${free}`;
      if (!this.#taskIndexes.has(taskId)) return taskId;
    }
  }

  /** Opens a session of an earlier process again. */
  restore(identity: SessionIdentity): GatewaySession {
    const session = new GatewaySession(identity, { ...this.#options, ...this.#books });
    this.#note(identity);
    this.#byHash.set(identity.tokenHash, session);
    this.#byId.set(identity.sessionId, session);
    return session;
  }

  /** Takes note of a session that an earlier process finished. */
  restoreFinished(identity: SessionIdentity): void {
    this.#note(identity);
    this.#keepFinished(identity);
  }

  /** Takes note of an episode whose session is known no longer: its place is not given again. */
  restoreWritten(place: SessionPlace): void {
    this.#note(place);
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

  #note({ taskId, taskIndex, sampleIndex }: SessionPlace): void {
    this.#openedCount += 1;
    this.#taskIndexes.set(taskId, taskIndex);
    this.#nextTaskIndex = Math.max(this.#nextTaskIndex, taskIndex + 1);
    const next = this.#nextSamples.get(taskId) ?? 0;
    this.#nextSamples.set(taskId, Math.max(next, sampleIndex + 1));
  }

  /** @throws ClientError `finished` where the token's session is over. */
  byToken(token: string): GatewaySession | undefined {
    const hash = hashToken(token);
    if (this.#finished.has(hash)) throw finishedError();
    return this.#byHash.get(hash);
  }

  /** Tells the key with which an agent samples, or sampled, in a session of this gateway. */
  isSamplingKey(token: string): boolean {
    const hash = hashToken(token);
    return this.#finished.has(hash) || this.#byHash.has(hash);
  }

  /** Returns the hash of the owner's key of a session, open or over; `undefined` where it has none. */
  ownerHashOf(sessionId: string): string | undefined {
    return this.#byId.get(sessionId)?.identity.ownerHash ?? this.#finishedOwners.get(sessionId);
  }

  byId(sessionId: string): GatewaySession | undefined {
    return this.#byId.get(sessionId);
  }

  /** @throws ClientError `finished` where the session is over, `not-found` where none of that id is known. */
  requireById(sessionId: string): GatewaySession {
    const session = this.#byId.get(sessionId);
    if (session !== undefined) return session;
    if (this.#finishedOwners.has(sessionId)) throw finishedError();
    throw new ClientError("not-found", "There is no open session of this id");
  }

  /** Nothing more is asked of the session. */
  remove({ identity }: GatewaySession): void {
    this.#byId.delete(identity.sessionId);
    this.#byHash.delete(identity.tokenHash);
    this.#keepFinished(identity);
  }
}

/** The agent reads this: it does not learn the session's id. */
function finishedError(): ClientError {
  return new ClientError("finished", "This session is finished");
}

import type { SamplingParameters } from "../../engine/engine.ts";
import { samplingOfTurn } from "../../engine/turn-seed.ts";
import type { Clock } from "../../async/clock.ts";
import { chooseCallIds } from "../../agent/call-id.ts";
import type { AssistantMessage } from "../../message.ts";
import type { RolloutError } from "../../errors.ts";
import { ClientError } from "../client-error.ts";
import type { AskedTurn } from "../conversation.ts";
import { SessionTree, type Placement, type TreeRules } from "../tree/session-tree.ts";
import type { SentTurn, TurnNode } from "../tree/turn-node.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import type { FieldCache } from "./field-cache.ts";
import { KnownBodies } from "./known-bodies.ts";
import { ReplyCache } from "./reply-cache.ts";
import { SessionMemory } from "./session-memory.ts";
import type { ToolCache } from "./tool-cache.ts";
import type { SessionLimits } from "./session-limits.ts";

/** What a session is opened for. JSON-able. */
export interface SessionIdentity {
  readonly sessionId: string;
  /** The hash of the key with which the agent samples. The key itself is kept nowhere. */
  readonly tokenHash: string;
  /**
   * The hash of the key with which the session is scored, shown and ended. Absent where an agent's own key
   * opened the session: then only the admin may do that.
   */
  readonly ownerHash?: string;
  readonly taskId: string;
  readonly taskIndex: number;
  readonly groupId: string;
  readonly sampleIndex: number;
  readonly seed: number;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  readonly openedAtMs: number;
}

/** A reward that somebody gave a session. JSON-able. */
export interface SessionReward {
  readonly reward: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Why the last request of a session brought no turn, where the agent cannot do anything about it. */
export type SessionSetback =
  /** What samples did not do its part. */
  | { readonly type: "failure"; readonly error: RolloutError }
  /** The session may not go on, or the conversation is too long for the model. */
  | { readonly type: "limit"; readonly stopReason: "max-turns" | "max-tokens" | "context-full" };

/** One session: what was sampled in it, and what came of it. */
export class GatewaySession {
  readonly identity: SessionIdentity;
  readonly tree: SessionTree<GatewayTurn>;
  readonly memory: SessionMemory;
  readonly bodies: KnownBodies;
  readonly retries = new ReplyCache();
  readonly #limits: SessionLimits;
  readonly #clock: Pick<Clock, "now">;
  /** Ends what is being sampled. */
  readonly stop = new AbortController();
  reward: SessionReward | undefined;
  /** Why the last request for a turn brought none; absent where it brought one, or was never made. */
  setback: SessionSetback | undefined;
  lastUsedAt: number;
  activeCount = 0;
  #sampledCount = 0;
  #requestCount = 0;
  #finished: ClientError | undefined;

  constructor(
    identity: SessionIdentity,
    options: {
      readonly rules: TreeRules;
      readonly tools: ToolCache;
      readonly fields: FieldCache;
      readonly limits: SessionLimits;
      readonly clock: Pick<Clock, "now">;
    },
  ) {
    this.identity = identity;
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.tree = new SessionTree(options.rules);
    this.bodies = new KnownBodies(options.fields);
    this.memory = new SessionMemory(this.tree, options.tools);
    this.lastUsedAt = options.clock.now();
  }

  get isFinished(): boolean {
    return this.#finished !== undefined;
  }

  /**
   * Nothing is asked any more; what is being sampled is given up. A second time changes nothing.
   *
   * @param why - What clients are told. Default: that it is finished.
   */
  finish(why = "it is finished"): void {
    this.#finished ??= new ClientError("finished", `This session takes no more turns: ${why}`);
    this.stop.abort(this.#finished);
  }

  /** Whether nobody has asked anything for so long that it is over. */
  get isIdle(): boolean {
    return (
      this.activeCount === 0 && this.#clock.now() - this.lastUsedAt >= this.#limits.idleTimeoutMs
    );
  }

  touch(): void {
    this.lastUsedAt = this.#clock.now();
  }

  /**
   * Says whether one more turn may be sampled.
   *
   * @throws ClientError `finished` where the session is over or has used up what it may, `overloaded`
   *   where too much of it is under way.
   */
  requireRoom(): void {
    if (this.#finished !== undefined) throw this.#finished;
    if (this.tree.nodes.length >= this.#limits.maxTurns) {
      const limit = `its ${this.#limits.maxTurns} turns`;
      this.setback = { type: "limit", stopReason: "max-turns" };
      throw new ClientError("finished", `This session has used up ${limit}`);
    }
    if (this.#sampledCount >= this.#limits.maxSessionTokens) {
      const limit = `its ${this.#limits.maxSessionTokens} tokens`;
      this.setback = { type: "limit", stopReason: "max-tokens" };
      throw new ClientError("finished", `This session has used up ${limit}`);
    }
    // The turn that asks is one of them.
    if (this.activeCount > this.#limits.maxParallelTurns) {
      const message = `This session has ${this.activeCount - 1} turns under way`;
      throw new ClientError("overloaded", message, { retryAfterS: 1 });
    }
  }

  /**
   * Refuses conversations that cannot fit before they are rendered: each message takes a token at least.
   *
   * @throws ClientError `too-long`.
   */
  requireFits({ messages: { length } }: Pick<AskedTurn, "messages">): void {
    const most = Math.min(this.#limits.maxContextTokens, mostMessages);
    if (length < most) return;
    const message = `prompt is too long: at least ${length} tokens > ${most - 1} maximum`;
    throw new ClientError("too-long", message);
  }

  /**
   * How many ids a turn may sample behind a prompt.
   *
   * @throws ClientError `too-long` where there is no room for one.
   */
  roomBehind(promptTokenCount: number, { maxTokens = Infinity }: AskedTurn): number {
    const { maxContextTokens, maxTokensPerTurn, maxSessionTokens } = this.#limits;
    const inContext = maxContextTokens - promptTokenCount;
    if (inContext <= 0) {
      // Claude Code shortens its conversation on just these words.
      const message = `prompt is too long: ${promptTokenCount} tokens > ${maxContextTokens - 1} maximum`;
      throw new ClientError("too-long", message);
    }
    const inSession = maxSessionTokens - this.#sampledCount;
    return Math.max(1, Math.min(maxTokens, maxTokensPerTurn, inContext, inSession));
  }

  /** How many requests were begun, those that brought no turn included. */
  get requestCount(): number {
    return this.#requestCount;
  }

  /**
   * Notes the requests of an earlier process, so that no id or seed is used twice.
   *
   * @param count - The number of requests that had been started when a turn was written.
   */
  noteRequests(count: number): void {
    this.#requestCount = Math.max(this.#requestCount, count);
  }

  /** An id that no other request of the gateway has. */
  nextRequestId(): string {
    return `${this.identity.sessionId}:${this.#requestCount++};`;
  }

  /** Sampling with the session's own seed. */
  seeded(sampling: SamplingParameters): SamplingParameters {
    const { seed } = this.identity;
    return samplingOfTurn(sampling, { seed, turnIndex: this.#requestCount });
  }

  /** Enters a turn of an earlier process again; see `SessionTree.restore()`. */
  restoreTurn(...[place, sampled]: Parameters<SessionTree<GatewayTurn>["restore"]>): void {
    const node = this.tree.restore(place, sampled);
    this.memory.keep(node);
    this.#sampledCount += sampled.record.generation.outputIds.length;
  }

  /** Enters a sampled turn. */
  enter(
    placement: Placement<GatewayTurn>,
    sampled: {
      readonly turn: SentTurn;
      readonly record: GatewayTurn;
      readonly isDelivered: boolean;
    },
  ): TurnNode<GatewayTurn> {
    const node = this.tree.add(placement, sampled);
    this.setback = undefined;
    this.memory.keep(node);
    this.#sampledCount += sampled.record.generation.outputIds.length;
    return node;
  }
}

/** Longer conversations would keep the template busy for seconds, and everybody else waiting. */
const mostMessages = 50_000;

/**
 * A sampled turn as the chat template is to see it: calls under the ids that the model wrote, where it
 * wrote any that templates take.
 *
 * @param writtenIds - Ids that the model gave its calls, in their order.
 */
export function toTemplateTurn(
  turn: SentTurn,
  { depth, writtenIds }: { depth: number; writtenIds: readonly (string | undefined)[] },
): AssistantMessage {
  const reasoning = turn.parts
    .flatMap((part) => (part.type === "reasoning" ? [part.text] : []))
    .join("");
  const ids = chooseCallIds(
    turn.calls.map((_call, index) => writtenIds[index]),
    depth,
  );
  const toolCalls = turn.calls.map(({ name, argumentsText }, index) => {
    return { id: ids[index]!, name, argumentsText };
  });
  return {
    role: "assistant",
    content: turn.text,
    ...(reasoning.trim() !== "" && { reasoning }),
    ...(toolCalls.length !== 0 && { toolCalls }),
  };
}

import type { RewardComponents } from "../../environment/reward-parts.ts";
import type { SamplingParameters } from "../../engine/engine.ts";
import { samplingOfTurn } from "../../engine/turn-seed.ts";
import type { Clock } from "../../async/clock.ts";
import { chooseCallIds } from "../../agent/call-id.ts";
import type { AssistantMessage } from "../../message.ts";
import { GatewayCounters } from "../../episode/gateway-counters.ts";
import type { RolloutError } from "../../errors.ts";
import { ClientError } from "../client-error.ts";
import type { RequestedTurn } from "../conversation.ts";
import { deriveLineage, type TurnLineage } from "../lineage/derive-lineage.ts";
import { EvidenceCollector } from "../lineage/turn-evidence.ts";
import { SessionTree, type Placement, type TreeRules } from "../tree/session-tree.ts";
import type { SentTurn, TurnNode } from "../tree/turn-node.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import type { FieldCache } from "./field-cache.ts";
import { RecentBodies } from "./recent-bodies.ts";
import { ReplyCache } from "./reply-cache.ts";
import { SessionMemory } from "./session-memory.ts";
import type { ToolCache } from "./tool-cache.ts";
import type { SessionLimits } from "./session-limits.ts";

/** The settings and key hashes of a session. JSON-able. */
export interface SessionIdentity {
  readonly sessionId: string;
  /** The hash of the agent's sampling key. */
  readonly tokenHash: string;
  /**
   * The hash of the owner key, which scores, shows and ends the session. Absent if an agent's own
   * key opened the session: then only the admin may do that.
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

/** The reward of a session. JSON-able. */
export interface SessionReward {
  readonly reward: number;
  readonly details?: Readonly<Record<string, unknown>>;
  /** The named parts of the reward. Their weighted sum is the reward. */
  readonly components?: RewardComponents;
  /**
   * The part of the reward that each sampled turn earned, by its index in the session. They add up to the
   * reward, and turns in no row earn 0. Only the end of a session may give them.
   */
  readonly turnRewards?: readonly number[];
}

/** The reason why the last request produced no turn, if the agent did not cause it. */
export type SessionSetback =
  /** The engine failed. */
  | { readonly type: "failure"; readonly error: RolloutError }
  /** The session reached a limit, or the conversation exceeds the context. */
  | { readonly type: "limit"; readonly stopReason: "max-turns" | "max-tokens" | "context-full" };

/** One session with its sampled turns. */
export class GatewaySession {
  readonly identity: SessionIdentity;
  readonly tree: SessionTree<GatewayTurn>;
  readonly memory: SessionMemory;
  readonly bodies: RecentBodies;
  readonly retries = new ReplyCache();
  /** Counters of the session's requests and turns. */
  readonly counters: GatewayCounters;
  readonly #limits: SessionLimits;
  readonly #clock: Pick<Clock, "now">;
  /** Aborts the turns that are being sampled. */
  readonly stop = new AbortController();
  reward: SessionReward | undefined;
  /** The setback of the last request. Absent if that request produced a turn. */
  setback: SessionSetback | undefined;
  lastUsedAt: number;
  activeCount = 0;
  readonly #evidence = new EvidenceCollector();
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
      /** The counters of all sessions. */
      readonly counters: Pick<GatewayCounters, "add">;
      readonly clock: Pick<Clock, "now">;
    },
  ) {
    this.identity = identity;
    this.#limits = options.limits;
    this.#clock = options.clock;
    this.tree = new SessionTree(options.rules);
    this.counters = new GatewayCounters(options.counters);
    this.bodies = new RecentBodies(options.fields);
    this.memory = new SessionMemory(this.tree, options.tools);
    this.lastUsedAt = options.clock.now();
  }

  get isFinished(): boolean {
    return this.#finished !== undefined;
  }

  /**
   * Ends the session: refuses requests and aborts the turns that are being sampled. A second call
   * changes nothing.
   *
   * @param why - The reason for the client. Default: it is finished.
   */
  finish(why = "it is finished"): void {
    this.#finished ??= new ClientError("finished", `This session takes no more turns: ${why}`);
    this.stop.abort(this.#finished);
  }

  /** True if the session has had no request for the idle timeout. */
  get isIdle(): boolean {
    return (
      this.activeCount === 0 && this.#clock.now() - this.lastUsedAt >= this.#limits.idleTimeoutMs
    );
  }

  /** Counts the error of a request if the request was refused as wrong. Returns true if so. */
  countRefusal(error: unknown): boolean {
    if (!(error instanceof ClientError) || !error.isRefusal) return false;
    this.counters.refused(error.message);
    return true;
  }

  touch(): void {
    this.lastUsedAt = this.#clock.now();
  }

  /**
   * Requires that the session may sample one more turn.
   *
   * @throws ClientError `finished` if the session is over or has reached a limit, `overloaded` if
   *   too many of its turns are being sampled.
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
    // Includes the current request.
    if (this.activeCount > this.#limits.maxParallelTurns) {
      const message = `This session has ${this.activeCount - 1} turns in progress`;
      throw new ClientError("overloaded", message, { retryAfterS: 1 });
    }
  }

  /**
   * Refuses conversations that cannot fit, before rendering. A message has at least one token.
   *
   * @throws ClientError `too-long`.
   */
  requireFits({ messages: { length } }: Pick<RequestedTurn, "messages">): void {
    const limit = Math.min(this.#limits.maxContextTokens, maxMessages);
    if (length < limit) return;
    const message = `prompt is too long: at least ${length} tokens > ${limit - 1} maximum`;
    throw new ClientError("too-long", message);
  }

  /**
   * Returns the maximum number of ids to sample after a prompt.
   *
   * @throws ClientError `too-long` if there is no room for one.
   */
  maxNewTokensAfter(promptTokenCount: number, { maxTokens = Infinity }: RequestedTurn): number {
    const { maxContextTokens, maxTokensPerTurn, maxSessionTokens } = this.#limits;
    const inContext = maxContextTokens - promptTokenCount;
    if (inContext <= 0) {
      // Claude Code shortens its conversation only for exactly this text.
      const message = `prompt is too long: ${promptTokenCount} tokens > ${maxContextTokens - 1} maximum`;
      throw new ClientError("too-long", message);
    }
    const inSession = maxSessionTokens - this.#sampledCount;
    return Math.max(1, Math.min(maxTokens, maxTokensPerTurn, inContext, inSession));
  }

  /** Number of started requests, including those without a turn. */
  get requestCount(): number {
    return this.#requestCount;
  }

  /**
   * Continues numbering after the requests of an earlier process, so that no request id or seed is
   * used twice.
   *
   * @param count - Number of requests that had been started.
   */
  skipRequests(count: number): void {
    this.#requestCount = Math.max(this.#requestCount, count);
  }

  /** Returns a request id that is unique in the gateway. */
  nextRequestId(): string {
    return `${this.identity.sessionId}:${this.#requestCount++};`;
  }

  /** Returns the sampling parameters with a seed for the next turn. */
  seeded(sampling: SamplingParameters): SamplingParameters {
    const { seed } = this.identity;
    return samplingOfTurn(sampling, { seed, turnIndex: this.#requestCount });
  }

  /** Restores a turn of an earlier process. See `SessionTree.restore()`. */
  restoreTurn(...[place, sampled]: Parameters<SessionTree<GatewayTurn>["restore"]>): void {
    this.#keep(this.tree.restore(place, sampled));
  }

  /** Adds a sampled turn. */
  addTurn(
    placement: Placement<GatewayTurn>,
    sampled: {
      readonly turn: SentTurn;
      readonly record: GatewayTurn;
      readonly isDelivered: boolean;
    },
  ): TurnNode<GatewayTurn> {
    const node = this.tree.add(placement, sampled);
    this.setback = undefined;
    this.#keep(node);
    return node;
  }

  #keep(node: TurnNode<GatewayTurn>): void {
    this.memory.keep(node);
    this.#evidence.add(node);
    this.#sampledCount += node.record.generation.outputIds.length;
  }

  /** The lineage of each turn, as far as the requests so far show it. */
  get lineage(): readonly TurnLineage[] {
    return deriveLineage(this.#evidence.all);
  }
}

/** Maximum number of messages. Rendering more would block the process for seconds. */
const maxMessages = 50_000;

/**
 * Converts a sampled turn to the chat template's message. Calls keep the ids that the model wrote
 * if templates accept them.
 *
 * @param writtenIds - The ids that the model wrote for its calls, in order.
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

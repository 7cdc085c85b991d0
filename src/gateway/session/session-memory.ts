import { encodeItem } from "../dialects/responses-items.ts";
import type { DialectName, Recollection } from "../dialects/dialect.ts";
import type { ClientMessage, ToolSet } from "../conversation.ts";
import { pathTo } from "../tree/record-path.ts";
import type { SessionTree } from "../tree/session-tree.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import type { ToolCache } from "./tool-cache.ts";
import { sentBack, type GatewayTurn } from "./gateway-turn.ts";

/** Finds a session's replies, items and calls by id. */
export class SessionMemory implements Recollection {
  readonly #items = new Map<string, object>();
  readonly #replies = new Map<string, TurnNode<GatewayTurn>>();
  readonly #replyIds = new Map<string, string>();
  readonly #callIds = new Map<string, string>();
  readonly #turns = new Map<string, TurnNode<GatewayTurn>["turn"]>();
  readonly #tools: ToolCache;

  /**
   * @param tools - Cache that the sessions of a gateway share, because their agents usually send
   *   equal tools.
   */
  constructor(tree: SessionTree<GatewayTurn>, tools: ToolCache) {
    this.#tools = tools;
    for (const node of tree.nodes) this.keep(node);
  }

  keep(node: TurnNode<GatewayTurn>): void {
    const { replyId } = node.record;
    for (const part of node.turn.parts) {
      this.#items.set(part.id, encodeItem(part, false));
      this.#replyIds.set(part.id, replyId);
    }
    this.#replies.set(replyId, node);
    const { toolCalls = [] } = node.record.message;
    node.turn.calls.forEach(({ id }, place) => {
      this.#callIds.set(id, toolCalls[place]!.id);
      this.#turns.set(id, node.turn);
    });
  }

  /** The policy's ids of sampled calls, by the ids that the client received. */
  get callIds(): ReadonlyMap<string, string> {
    return this.#callIds;
  }

  readonly toolsOf = (
    dialect: DialectName,
    list: readonly unknown[],
    read: () => ToolSet,
  ): ToolSet => this.#tools.find({ dialect, list }, read);

  item(id: string): object | undefined {
    return this.#items.get(id);
  }

  textBeside(callId: string): string | undefined {
    return this.#turns.get(callId)?.text;
  }

  replyOf(itemId: string): string | undefined {
    return this.#replyIds.get(itemId);
  }

  conversationOf(replyId: string): readonly ClientMessage[] | undefined {
    const node = this.#replies.get(replyId);
    if (node === undefined) return undefined;
    const path = pathTo(node);
    const messages = path.flatMap(({ record, turn }) => [...record.environment, sentBack(turn)]);
    return path[0]?.record.hasInstructions === true ? messages.slice(1) : messages;
  }
}

import type { ToolDefinition } from "../../message.ts";
import type { RequestedTurn, ClientMessage } from "../conversation.ts";
import { assertInvariant } from "../../errors.ts";
import { toPlainJson } from "../../../packages/python-values/src/value.ts";
import { valueKey } from "./json-key.ts";
import { matchTurn, type Strictness } from "./match-turn.ts";
import {
  DigestCache,
  digest,
  keyMessages,
  type KeyedMessage,
  type KeyRules,
} from "./message-keys.ts";
import { RecentRequests } from "./recent-requests.ts";
import type { PlacementNote, RootCause, SentTurn, TurnNode } from "./turn-node.ts";

/** Rules for matching requests to turns. */
export interface TreeRules extends KeyRules {
  readonly strictness: Strictness;
}

/** The position of a request in the tree. */
export interface Placement<Record> {
  /** The turn that the request continues. Absent for a root. */
  readonly parent: TurnNode<Record> | undefined;
  /** The reason why the request starts a root. Absent otherwise. */
  readonly cause: RootCause | undefined;
  /** The messages after the continued turn, or the complete conversation. Results are in order. */
  readonly environment: readonly ClientMessage[];
  readonly notes: readonly PlacementNote[];
  /** The key of the node among its siblings. See `SessionTree`. */
  readonly key: PlaceKey;
}

/** The key of a request among the requests that continue the same turn. */
export interface PlaceKey {
  /** A number that stands for the tools. */
  readonly tools: number;
  /** A digest of the messages since the previous turn. */
  readonly environment: string;
  readonly holdsAssistant: boolean;
}

/** A request with its position, from which a longer request can continue without a search. */
interface PlacedRequest<Record> {
  readonly messages: readonly ClientMessage[];
  readonly tools: number;
  readonly place: Walk<Record>;
}

/** A position in the tree that a part of a request leads to. */
interface Walk<Record> {
  readonly node: Node<Record> | undefined;
  /** Number of messages up to and including the node's turn. */
  readonly end: number;
  /** Keys of the messages after the node's turn. */
  key: string;
  readonly byId: boolean;
  readonly notes: readonly PlacementNote[];
}

/** The position before the first message. */
const startWalk: Walk<never> = { node: undefined, end: 0, key: "", byId: true, notes: [] };

interface Node<Record> extends TurnNode<Record> {
  readonly children: Node<Record>[];
  readonly parent: Node<Record> | undefined;
  isDelivered: boolean;
  /** Number of children after assistant messages that were not sampled here. */
  foreignCount: number;
}

/**
 * The sampled turns of a session as a tree. A request that starts with the conversations of several
 * turns continues the deepest of them. A turn is recognised by its calls or its text, never by an id
 * alone.
 *
 * The tree has no token ids, no clock and no rendering.
 */
export class SessionTree<Record> {
  readonly #rules: TreeRules;
  readonly #nodes: Node<Record>[] = [];
  readonly #roots: Node<Record>[] = [];
  /** Nodes by parent index, and by the key of the messages since the parent. */
  readonly #byPlace = new Map<number, Map<string, Node<Record>[]>>();
  /** Numbers of the tools of roots after assistant messages that were not sampled here. */
  readonly #foreignRoots = new Set<number>();
  /** A number for each distinct set of tools. */
  readonly #toolNumbers = new Map<string, number>();
  /** Ids of calls and marks that were sent to the client. */
  readonly #sentIds = new Set<string>();
  readonly #digests = new DigestCache();
  readonly #recent = new RecentRequests<Walk<Record>>();
  /** The request of each placement, which is remembered once its turn is added. */
  readonly #placed = new WeakMap<Placement<Record>, PlacedRequest<Record>>();

  constructor(rules: TreeRules) {
    this.#rules = rules;
  }

  /** The turns in sampling order. */
  get nodes(): readonly TurnNode<Record>[] {
    return this.#nodes;
  }

  get roots(): readonly TurnNode<Record>[] {
    return this.#roots;
  }

  /** Finds the turn that a request continues. */
  place({ messages, tools }: Pick<RequestedTurn, "messages" | "tools">): Placement<Record> {
    const toolsKey = this.#numberOf(tools);
    const repeated = this.#recent.find(messages, toolsKey);
    if (repeated !== undefined) {
      const { place: start, length } = repeated;
      const placed = this.#placeFrom(messages, toolsKey, { start, length });
      if (placed !== undefined) return placed;
    }
    return this.#placeFrom(messages, toolsKey) ?? this.#placeRoot(messages, toolsKey);
  }

  /**
   * Places a request, starting after the messages with a known position.
   *
   * @returns `undefined` if the request continues no turn after that position.
   */
  #placeFrom(
    messages: readonly ClientMessage[],
    tools: number,
    from?: { readonly start: Walk<Record>; readonly length: number },
  ): Placement<Record> | undefined {
    const { length: start = 0 } = from ?? {};
    const options = { digests: this.#digests, start };
    const { keyed, anomalies } = keyMessages(messages, this.#rules, options);
    const { best, edited, isAmbiguous } = this.#walk(keyed, tools, from);
    const rest = keyed.slice(best.end - start);
    if (best.node === undefined || best.end <= start || rest.length === 0) return undefined;
    const environment = rest.map((each) => withSentId(each, best));
    const own = joinKeys(rest);
    const key = {
      tools,
      environment: digest(own),
      holdsAssistant: environment.some(({ role }) => role === "assistant"),
    };
    const notes = new Set([
      ...best.notes,
      ...anomalies.flatMap(({ index, note }) => (index >= best.end ? [note] : [])),
      ...(isAmbiguous ? (["ambiguous"] as const) : []),
      ...(edited !== undefined && edited >= best.end ? (["edited-later"] as const) : []),
    ]);
    const placement = {
      parent: best.node,
      cause: undefined,
      environment,
      notes: [...notes],
      key,
    };
    this.#placed.set(placement, { messages, tools, place: { ...best, key: own } });
    return placement;
  }

  /** Places a request that continues no turn, and determines the cause. */
  #placeRoot(messages: readonly ClientMessage[], tools: number): Placement<Record> {
    const { keyed, anomalies } = keyMessages(messages, this.#rules, { digests: this.#digests });
    const { best, edited } = this.#walk(keyed, tools);
    const environment = keyed.map(({ message }) => message);
    const own = joinKeys(keyed);
    const key = {
      tools,
      environment: digest(own),
      holdsAssistant: environment.some(({ role }) => role === "assistant"),
    };
    const cause =
      best.node === undefined
        ? this.#findCause(keyed, { key, isEdited: edited !== undefined })
        : ("no-environment" as const);
    const notes = [...new Set(anomalies.map(({ note }) => note))];
    const placement = { parent: undefined, cause, environment, notes, key };
    if (best.node === undefined && !key.holdsAssistant) {
      this.#placed.set(placement, { messages, tools, place: { ...startWalk, key: own } });
    }
    return placement;
  }

  /**
   * Places a request as a root, if the chat template cannot continue the turn that `place()` found.
   */
  asRoot(
    { messages, tools }: Pick<RequestedTurn, "messages" | "tools">,
    cause: RootCause,
  ): Placement<Record> {
    const { keyed, anomalies } = keyMessages(messages, this.#rules, { digests: this.#digests });
    const environment = keyed.map(({ message }) => message);
    const key = {
      tools: this.#numberOf(tools),
      environment: digest(joinKeys(keyed)),
      holdsAssistant: environment.some(({ role }) => role === "assistant"),
    };
    const notes = [...new Set(anomalies.map(({ note }) => note))];
    return { parent: undefined, cause, environment, notes, key };
  }

  /** Adds a turn that was sampled at a placement. */
  add(
    placement: Placement<Record>,
    sampled: { readonly turn: SentTurn; readonly record: Record; readonly isDelivered: boolean },
  ): TurnNode<Record> {
    const { parent, cause, environment, key } = placement;
    const placed = this.#placed.get(placement);
    if (placed !== undefined) this.#recent.keep(placed.messages, placed.tools, placed.place);
    assertInvariant((parent === undefined) !== (cause === undefined), "a root has a cause");
    const parentNode = parent === undefined ? undefined : this.#nodes[parent.index];
    assertInvariant(parentNode === parent, "a turn continues one of its own session");
    const node: Node<Record> = {
      index: this.#nodes.length,
      parent: parentNode,
      children: [],
      cause,
      place: placeName(parentNode, key),
      tools: parentNode === undefined ? key.tools : undefined,
      foreignCount: 0,
      ...sampled,
    };
    this.#nodes.push(node);
    if (parentNode === undefined) this.#roots.push(node);
    else {
      parentNode.children.push(node);
      // A client that answers a turn has received it.
      parentNode.isDelivered = true;
    }
    if (key.holdsAssistant) {
      if (parentNode === undefined) this.#foreignRoots.add(key.tools);
      else parentNode.foreignCount += 1;
    }
    for (const { id } of node.turn.calls) this.#sentIds.add(id);
    for (const mark of node.turn.marks) this.#sentIds.add(mark);
    for (const { content } of environment) this.#digests.keep(content);
    const places = this.#placesUnder(parentNode);
    places.set(node.place, [...(places.get(node.place) ?? []), node]);
    return node;
  }

  /**
   * Restores a turn of an earlier process.
   *
   * @param place - Its position: the parent's index, the root's tools, and `key` of its placement.
   */
  restore(
    place: {
      readonly parentIndex: number | undefined;
      readonly cause: RootCause | undefined;
      readonly tools: RequestedTurn["tools"];
      readonly key: Pick<PlaceKey, "environment" | "holdsAssistant">;
    },
    sampled: { readonly turn: SentTurn; readonly record: Record; readonly isDelivered: boolean },
  ): TurnNode<Record> {
    const { parentIndex, cause } = place;
    const parent = parentIndex === undefined ? undefined : this.#nodes[parentIndex];
    const key = { ...place.key, tools: this.#numberOf(place.tools) };
    return this.add({ parent, cause, environment: [], notes: [], key }, sampled);
  }

  /** Records whether the client received the complete turn. */
  setDelivered({ index }: Pick<TurnNode<Record>, "index">, isDelivered: boolean): void {
    this.#nodes[index]!.isDelivered = isDelivered;
  }

  #numberOf(tools: RequestedTurn["tools"]): number {
    const key = toolsKey(tools);
    const number = this.#toolNumbers.get(key);
    if (number !== undefined) return number;
    this.#toolNumbers.set(key, this.#toolNumbers.size);
    return this.#toolNumbers.size - 1;
  }

  #placesUnder(parent: Node<Record> | undefined): Map<string, Node<Record>[]> {
    const name = parent?.index ?? -1;
    const existing = this.#byPlace.get(name);
    if (existing !== undefined) return existing;
    const places = new Map<string, Node<Record>[]>();
    this.#byPlace.set(name, places);
    return places;
  }

  /** Follows a request through the tree along every matching path. */
  #walk(
    keyed: readonly KeyedMessage[],
    tools: number,
    from?: { readonly start: Walk<Record>; readonly length: number },
  ) {
    const { start = startWalk, length: first = 0 } = from ?? {};
    let best: Walk<Record> = start;
    let walks: Walk<Record>[] = [{ ...best }];
    let edited: number | undefined;
    let isAmbiguous = false;
    keyed.forEach(({ message, key }, place) => {
      // Results may be reordered, but their number is the same.
      const index = first + place;
      if (message.role === "assistant") {
        const reached: Walk<Record>[] = [];
        for (const walk of walks) {
          for (const node of this.#candidates(walk, tools)) {
            const match = matchTurn(message, node.turn, this.#rules.strictness);
            if (match.type === "edited") edited ??= index;
            if (match.type !== "same") continue;
            const notes =
              match.notes.length === 0 ? walk.notes : [...new Set([...walk.notes, ...match.notes])];
            reached.push({ node, end: index + 1, key: "", byId: match.byId, notes });
          }
        }
        const chosen = choose(reached);
        if (chosen !== undefined) {
          best = chosen.best;
          isAmbiguous = chosen.isAmbiguous;
        }
        walks = [...walks.filter((walk) => this.#mayContinue(walk, tools)), ...reached];
      }
      for (const walk of walks) if (walk.end <= index) walk.key += key();
    });
    return { best, edited, isAmbiguous };
  }

  #candidates(walk: Walk<Record>, tools: number): readonly Node<Record>[] {
    const key = { tools, environment: digest(walk.key), holdsAssistant: false };
    return this.#placesUnder(walk.node).get(placeName(walk.node, key)) ?? [];
  }

  /** True if a turn may follow assistant messages that were not sampled here. */
  #mayContinue({ node }: Walk<Record>, tools: number): boolean {
    return node === undefined ? this.#foreignRoots.has(tools) : node.foreignCount > 0;
  }

  #findCause(
    keyed: readonly KeyedMessage[],
    { key, isEdited }: { readonly key: PlaceKey; readonly isEdited: boolean },
  ): RootCause {
    if (this.#nodes.length === 0) return "first";
    if (this.#placesUnder(undefined).has(placeName(undefined, key))) return "repeated-prompt";
    const otherTools = [...this.#toolNumbers.values()].some(
      (tools) => tools !== key.tools && this.#repeatsUnder(keyed, tools),
    );
    if (otherTools) return "tools-changed";
    if (keyed.every(({ message }) => message.role !== "assistant")) return "new-conversation";
    if (isEdited) return "history-edited";
    return keyed.some(({ message }) => this.#isSent(message)) ? "moved-turn" : "foreign-assistant";
  }

  /** True if the request would continue a turn or repeat a root with these tools. */
  #repeatsUnder(keyed: readonly KeyedMessage[], tools: number): boolean {
    if (this.#walk(keyed, tools).best.node !== undefined) return true;
    const environment = digest(joinKeys(keyed));
    return this.#placesUnder(undefined).has(
      placeName(undefined, { tools, environment, holdsAssistant: false }),
    );
  }

  #isSent(message: ClientMessage): boolean {
    if (message.role !== "assistant") return false;
    return (
      message.calls.some(({ id }) => this.#sentIds.has(id)) ||
      message.marks.some((mark) => this.#sentIds.has(mark))
    );
  }
}

/** Replaces the client's id of a result with the id under which the call was sent. */
function withSentId(
  { message, answers }: KeyedMessage,
  { node, end }: Walk<unknown>,
): ClientMessage {
  if (message.role !== "tool" || answers?.at !== end - 1) return message;
  const calls = node?.turn.calls ?? [];
  if (calls.some(({ id }) => id === message.callId)) return message;
  const callId = calls[answers.place]?.id ?? message.callId;
  return { ...message, callId };
}

function joinKeys(keyed: readonly KeyedMessage[]): string {
  return keyed.map(({ key }) => key()).join("");
}

/** Keys of tools by their list, because agents send equal tools repeatedly. */
const toolsKeys = new WeakMap<readonly ToolDefinition[], string>();

function toolsKey(tools: readonly ToolDefinition[]): string {
  const cached = toolsKeys.get(tools);
  if (cached !== undefined) return cached;
  const key = digest(valueKey(tools.map(({ openai }) => toPlainJson(openai))));
  toolsKeys.set(tools, key);
  return key;
}

/** The tools are part of a root's name only, because later turns have the root's tools. */
function placeName(
  parent: TurnNode<unknown> | undefined,
  { tools, environment }: PlaceKey,
): string {
  return parent === undefined ? `${tools}\n${environment}` : environment;
}

/** Chooses one of the matching turns. Prefers turns with ids that the client sent back, then the newest turn. */
function choose<Record>(reached: readonly Walk<Record>[]) {
  if (reached.length === 0) return undefined;
  const withId = reached.filter(({ byId }) => byId);
  const fitting = withId.length > 0 ? withId : reached;
  const best = fitting.reduce((left, right) =>
    right.node!.index > left.node!.index ? right : left,
  );
  return { best, isAmbiguous: fitting.length > 1 };
}

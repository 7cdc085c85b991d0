import type { ToolDefinition } from "../../message.ts";
import type { AskedTurn, ClientMessage } from "../conversation.ts";
import { assertInvariant } from "../../errors.ts";
import { toPlainJson } from "../../python/value.ts";
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

/** How requests are matched to turns. */
export interface TreeRules extends KeyRules {
  readonly strictness: Strictness;
}

/** Where a request belongs. */
export interface Placement<Record> {
  /** The turn that it continues; absent where it begins a root. */
  readonly parent: TurnNode<Record> | undefined;
  /** Why it begins a root; absent where it does not. */
  readonly cause: RootCause | undefined;
  /** The place of the message that `cause` is about; absent where it is about the whole. */
  readonly causeAt?: number;
  /** What follows the turn that is continued, or the whole conversation; results in order. */
  readonly environment: readonly ClientMessage[];
  readonly notes: readonly PlacementNote[];
  /** How nodes under the same parent are found again; see `SessionTree`. */
  readonly key: PlaceKey;
}

/** What the requests that one node answers have in common, from the turn before it on. */
export interface PlaceKey {
  /** A number that stands for the tools. */
  readonly tools: number;
  /** A digest of what the client sent there. */
  readonly environment: string;
  readonly holdsAssistant: boolean;
}

/** A request, and the place up to which it needs no search when it comes again with more. */
interface PlacedRequest<Record> {
  readonly messages: readonly ClientMessage[];
  readonly tools: number;
  readonly place: Walk<Record>;
}

/** A place that part of a request leads to. */
interface Walk<Record> {
  readonly node: Node<Record> | undefined;
  /** Number of messages up to and with the node's turn. */
  readonly end: number;
  /** Keys of the messages since. */
  key: string;
  readonly byId: boolean;
  readonly notes: readonly PlacementNote[];
}

/** The beginning of a conversation. */
const noWalk: Walk<never> = { node: undefined, end: 0, key: "", byId: true, notes: [] };

interface Node<Record> extends TurnNode<Record> {
  readonly children: Node<Record>[];
  readonly parent: Node<Record> | undefined;
  isDelivered: boolean;
  /** Children behind messages of an assistant that were not sampled here. */
  foreignCount: number;
}

/**
 * The turns that were sampled in one session, and which continues which. A request continues the
 * deepest turn whose conversation it repeats, message by message from the beginning; a turn that was
 * sampled here is known by what it called or said, and never by an id alone.
 *
 * Pure: no ids of tokens, no clock, nothing rendered.
 */
export class SessionTree<Record> {
  readonly #rules: TreeRules;
  readonly #nodes: Node<Record>[] = [];
  readonly #roots: Node<Record>[] = [];
  /** Nodes by the place at which they stand: parent, tools and what lies between. */
  readonly #byPlace = new Map<number, Map<string, Node<Record>[]>>();
  /** Roots behind messages of an assistant that were not sampled here, by their tools. */
  readonly #foreignRoots = new Set<number>();
  /** A number for each set of tools. */
  readonly #toolNumbers = new Map<string, number>();
  /** Ids of calls and marks that were ever sent. */
  readonly #sentIds = new Set<string>();
  readonly #digests = new DigestCache();
  readonly #recent = new RecentRequests<Walk<Record>>();
  /** What is kept of a request once a turn was sampled for it: of others nothing is. */
  readonly #placed = new WeakMap<Placement<Record>, PlacedRequest<Record>>();

  constructor(rules: TreeRules) {
    this.#rules = rules;
  }

  /** In the order in which they were sampled. */
  get nodes(): readonly TurnNode<Record>[] {
    return this.#nodes;
  }

  get roots(): readonly TurnNode<Record>[] {
    return this.#roots;
  }

  /** Finds the turn that a request continues. */
  place({ messages, tools }: Pick<AskedTurn, "messages" | "tools">): Placement<Record> {
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
   * Places a request, from the place on where so many of its messages are known to belong.
   *
   * @returns nothing where it continues no turn from there on.
   */
  #placeFrom(
    messages: readonly ClientMessage[],
    tools: number,
    known?: { readonly start: Walk<Record>; readonly length: number },
  ): Placement<Record> | undefined {
    const { length: start = 0 } = known ?? {};
    const options = { book: this.#digests, start };
    const { keyed, noted } = keyMessages(messages, this.#rules, options);
    const { best, edited, isAmbiguous } = this.#walk(keyed, tools, known);
    const rest = keyed.slice(best.end - start);
    if (best.node === undefined || best.end <= start || rest.length === 0) return undefined;
    const environment = rest.map((each) => underSentId(each, best));
    const own = joinKeys(rest);
    const key = {
      tools,
      environment: digest(own),
      holdsAssistant: environment.some(({ role }) => role === "assistant"),
    };
    const notes = new Set([
      ...best.notes,
      ...noted.flatMap(({ index, note }) => (index >= best.end ? [note] : [])),
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

  /** Places a request that continues nothing, and says why. */
  #placeRoot(messages: readonly ClientMessage[], tools: number): Placement<Record> {
    const { keyed, noted } = keyMessages(messages, this.#rules, { book: this.#digests });
    const { best, edited } = this.#walk(keyed, tools);
    const whole = keyed.map(({ message }) => message);
    const own = joinKeys(keyed);
    const key = {
      tools,
      environment: digest(own),
      holdsAssistant: whole.some(({ role }) => role === "assistant"),
    };
    const found =
      best.node === undefined
        ? this.#findCause(keyed, { key, edited })
        : { cause: "no-environment" as const };
    const notes = [...new Set(noted.map(({ note }) => note))];
    const placement = { parent: undefined, ...found, environment: whole, notes, key };
    if (best.node === undefined && !key.holdsAssistant) {
      this.#placed.set(placement, { messages, tools, place: { ...noWalk, key: own } });
    }
    return placement;
  }

  /**
   * The same request as a root: where the chat template cannot continue the turn that was found.
   */
  asRoot(
    { messages, tools }: Pick<AskedTurn, "messages" | "tools">,
    cause: RootCause,
  ): Placement<Record> {
    const { keyed, noted } = keyMessages(messages, this.#rules, { book: this.#digests });
    const environment = keyed.map(({ message }) => message);
    const key = {
      tools: this.#numberOf(tools),
      environment: digest(joinKeys(keyed)),
      holdsAssistant: environment.some(({ role }) => role === "assistant"),
    };
    const notes = [...new Set(noted.map(({ note }) => note))];
    return { parent: undefined, cause, environment, notes, key };
  }

  /** Enters a turn that was sampled where a request was placed. */
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
      foreignCount: 0,
      ...sampled,
    };
    this.#nodes.push(node);
    if (parentNode === undefined) this.#roots.push(node);
    else {
      parentNode.children.push(node);
      // Whoever answers a turn has it.
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
    const place = placeName(parentNode, key);
    places.set(place, [...(places.get(place) ?? []), node]);
    return node;
  }

  /**
   * Enters a turn of an earlier process again.
   *
   * @param place - Where it stood: the index of the turn before it, the root's tools, and what `key` of
   *   its placement was.
   */
  restore(
    place: {
      readonly parentIndex: number | undefined;
      readonly cause: RootCause | undefined;
      readonly tools: AskedTurn["tools"];
      readonly key: Pick<PlaceKey, "environment" | "holdsAssistant">;
    },
    sampled: { readonly turn: SentTurn; readonly record: Record; readonly isDelivered: boolean },
  ): TurnNode<Record> {
    const { parentIndex, cause } = place;
    const parent = parentIndex === undefined ? undefined : this.#nodes[parentIndex];
    const key = { ...place.key, tools: this.#numberOf(place.tools) };
    return this.add({ parent, cause, environment: [], notes: [], key }, sampled);
  }

  /** Notes that a client has a turn whole, or that its connection ended before that. */
  setDelivered({ index }: Pick<TurnNode<Record>, "index">, isDelivered: boolean): void {
    this.#nodes[index]!.isDelivered = isDelivered;
  }

  #numberOf(tools: AskedTurn["tools"]): number {
    const key = toolsKey(tools);
    const known = this.#toolNumbers.get(key);
    if (known !== undefined) return known;
    this.#toolNumbers.set(key, this.#toolNumbers.size);
    return this.#toolNumbers.size - 1;
  }

  #placesUnder(parent: Node<Record> | undefined): Map<string, Node<Record>[]> {
    const name = parent?.index ?? -1;
    const known = this.#byPlace.get(name);
    if (known !== undefined) return known;
    const places = new Map<string, Node<Record>[]>();
    this.#byPlace.set(name, places);
    return places;
  }

  /** Follows a request through the tree, on every way that fits. */
  #walk(
    keyed: readonly KeyedMessage[],
    tools: number,
    known?: { readonly start: Walk<Record>; readonly length: number },
  ) {
    const { start = noWalk, length: first = 0 } = known ?? {};
    let best: Walk<Record> = start;
    let walks: Walk<Record>[] = [{ ...best }];
    let edited: number | undefined;
    let isAmbiguous = false;
    keyed.forEach(({ message, key }, place) => {
      // Results may stand in another order than they came in; their number is the same.
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
        walks = [...walks.filter((walk) => this.#mayGoOn(walk, tools)), ...reached];
      }
      for (const walk of walks) if (walk.end <= index) walk.key += key();
    });
    return { best, edited, isAmbiguous };
  }

  #candidates(walk: Walk<Record>, tools: number): readonly Node<Record>[] {
    const key = { tools, environment: digest(walk.key), holdsAssistant: false };
    return this.#placesUnder(walk.node).get(placeName(walk.node, key)) ?? [];
  }

  /** Whether a turn may stand behind messages of an assistant that were not sampled here. */
  #mayGoOn({ node }: Walk<Record>, tools: number): boolean {
    return node === undefined ? this.#foreignRoots.has(tools) : node.foreignCount > 0;
  }

  #findCause(
    keyed: readonly KeyedMessage[],
    { key, edited }: { readonly key: PlaceKey; readonly edited: number | undefined },
  ): { readonly cause: RootCause; readonly causeAt?: number } {
    if (this.#nodes.length === 0) return { cause: "first" };
    if (this.#placesUnder(undefined).has(placeName(undefined, key))) {
      return { cause: "repeated-prompt" };
    }
    const otherTools = [...this.#toolNumbers.values()].some(
      (tools) => tools !== key.tools && this.#repeatsUnder(keyed, tools),
    );
    if (otherTools) return { cause: "tools-changed" };
    const at = keyed.findIndex(({ message }) => message.role === "assistant");
    if (at === -1) return { cause: "new-conversation" };
    if (edited !== undefined) return { cause: "history-edited", causeAt: edited };
    const moved = keyed.findIndex(({ message }) => this.#isSent(message));
    if (moved !== -1) return { cause: "moved-turn", causeAt: moved };
    return { cause: "foreign-assistant", causeAt: at };
  }

  /** Whether the request would continue something, or ask for a root again, with these tools. */
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

/** A result of the turn that is continued has the id that its call was sent with, though the client renames it. */
function underSentId(
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

/** Keys of tools, which agents send again and again. */
const toolsKeys = new WeakMap<readonly ToolDefinition[], string>();

function toolsKey(tools: readonly ToolDefinition[]): string {
  const known = toolsKeys.get(tools);
  if (known !== undefined) return known;
  const key = digest(valueKey(tools.map(({ openai }) => toPlainJson(openai))));
  toolsKeys.set(tools, key);
  return key;
}

/** Tools are the root's: whatever continues it has the same. */
function placeName(
  parent: TurnNode<unknown> | undefined,
  { tools, environment }: PlaceKey,
): string {
  return parent === undefined ? `${tools}\n${environment}` : environment;
}

/** Of turns that a message all fits: one whose id came back, or else the newest. */
function choose<Record>(reached: readonly Walk<Record>[]) {
  if (reached.length === 0) return undefined;
  const known = reached.filter(({ byId }) => byId);
  const fitting = known.length > 0 ? known : reached;
  const best = fitting.reduce((left, right) =>
    right.node!.index > left.node!.index ? right : left,
  );
  return { best, isAmbiguous: fitting.length > 1 };
}

import type { ClientMessage } from "../conversation.ts";
import { billingLine, digest } from "../tree/message-keys.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import { linkOf, type ClientLabels, type ClientLink } from "./client-labels.ts";
import { PassedTexts, type PassedText, SampledTexts } from "./sampled-texts.ts";
import { argumentTexts, longLines, passedOnText } from "./text-pieces.ts";

/** The data of a turn from which its lineage is derived. */
export interface LineageTurn {
  /** The client's messages since the previous turn; for a root, the complete conversation. */
  readonly environment: readonly ClientMessage[];
  readonly labels: ClientLabels;
}

/** A turn of a session, with the facts in its request about earlier turns. */
export interface TurnEvidence {
  readonly index: number;
  /** Index of the turn that it continues. Absent for a root. */
  readonly parent?: number;
  /** Index of its root: the turn that began its conversation. */
  readonly root: number;
  readonly link: ClientLink;
  /** A key of the request: equal requests have equal keys. */
  readonly request: string;
  /** A key of a root's tools and system message: equal ones have equal keys. Absent for other turns. */
  readonly setting?: string;
  /** The request's last message. Absent if it is short. */
  readonly order?: string;
  /** The turn's text, if it is too short to recognise the turn by. */
  readonly shortText?: string;
  /** True for a root whose reply is a title: its system message or the reply's form says so. */
  readonly isTitle: boolean;
  /** Earlier turns without calls that the new messages quote, oldest first. */
  readonly quoted: readonly number[];
  /** For a root that has a summary of another conversation as an assistant turn: the turn that sampled the summary. */
  readonly lifted?: number;
  /** For a root: the last earlier turn that the root has as an assistant turn. */
  readonly repeated?: number;
  /** The turn with the tool call that passed on the user's message. The call started this conversation. */
  readonly calledBy?: number;
  /** True if the turn has no calls, so that a conversation may end with it. */
  readonly isAnswer: boolean;
}

/** Minimum length of `order`. Shorter messages, such as "go on", do not identify a request for a summary. */
const minOrderLength = 40;

/**
 * Minimum length of an argument that starts a conversation. Shorter ones, such as a file's name, may also occur in
 * other conversations. They count only if the client says that a sub-agent sent the request, or while the client has
 * not continued the turn with the call.
 */
const minPromptLength = 40;

/** Maximum number of characters of a request that are searched for texts. The limit bounds the time. */
const maxSearchedLength = 131_072;

/** Minimum length of a text that identifies a turn. Texts such as "Done." do not. */
const minTextLength = 12;

/** Matches opencode's request for a title, which no header marks. */
const titleOrder = /^You are a title generator\b/;

/**
 * Collects the facts that the requests of a session show about earlier turns. The work for a turn grows with the number
 * of its new messages.
 */
export class EvidenceCollector {
  readonly #all: TurnEvidence[] = [];
  readonly #nodes: TurnNode<LineageTurn>[] = [];
  readonly #texts = new SampledTexts();
  readonly #passed = new PassedTexts();
  /** Turns by the ids and marks that the client received with them. */
  readonly #byId = new Map<string, number>();
  /** Turns without calls by their text. */
  readonly #byText = new Map<string, number>();
  /** The turns that another turn continues. */
  readonly #continued = new Set<number>();

  /** The evidence of all turns in sampling order. */
  get all(): readonly TurnEvidence[] {
    return this.#all;
  }

  /** Adds the next turn in sampling order. */
  add(node: TurnNode<LineageTurn>): void {
    const { index, parent, record, place, turn } = node;
    const { environment, labels } = record;
    const link = linkOf(labels);
    const order = environment.at(-1)?.content ?? "";
    const isRoot = parent === undefined;
    const setting = isRoot ? settingOf(node) : undefined;
    this.#all.push({
      index,
      ...(!isRoot && { parent: parent.index }),
      root: isRoot ? index : this.#all[parent.index]!.root,
      link,
      request: `${parent?.index ?? ""} ${place} ${link.thread ?? ""}`,
      ...(setting !== undefined && { setting }),
      ...(order.length >= minOrderLength && { order }),
      ...(turn.calls.length === 0 &&
        longLines(passedOnText(turn.text)).length === 0 && { shortText: turn.text }),
      isTitle: isRoot && (link.isTitle || titleOrder.test(systemOf(environment))),
      quoted: this.#quotedIn(environment, { isRoot }),
      ...(setting !== undefined && this.#assistantsOf(node, setting)),
      ...this.#calledBy(environment, link),
      isAnswer: turn.calls.length === 0,
    });
    if (!isRoot) this.#continued.add(parent.index);
    this.#nodes.push(node);
    this.#keep(node);
  }

  #keep({ index, turn }: TurnNode<LineageTurn>): void {
    for (const { id, argumentsText } of turn.calls) {
      this.#byId.set(id, index);
      for (const text of argumentTexts(argumentsText)) this.#passed.add(text, index);
    }
    for (const mark of turn.marks) this.#byId.set(mark, index);
    if (turn.calls.length > 0) return;
    this.#texts.add(turn.text, index);
    const text = turn.text.trim();
    if (text.length >= minTextLength) this.#byText.set(text, index);
  }

  /** Finds texts in new messages. The results in a root's history are not new. */
  #quotedIn(
    environment: readonly ClientMessage[],
    { isRoot }: { readonly isRoot: boolean },
  ): readonly number[] {
    let room = maxSearchedLength;
    const turns = environment.flatMap(({ role, content }) => {
      if (role === "assistant" || (isRoot && role === "tool") || room <= 0) return [];
      room -= content.length;
      return this.#texts.quotedIn(content.slice(0, room + content.length));
    });
    return [...new Set(turns)].toSorted((left, right) => left - right);
  }

  /** Finds the turns that a root has as assistant turns. */
  #assistantsOf(
    { record: { environment } }: TurnNode<LineageTurn>,
    setting: string,
  ): Pick<TurnEvidence, "lifted" | "repeated"> {
    const found: { lifted?: number; repeated?: number } = {};
    for (const message of environment) {
      if (message.role !== "assistant") continue;
      const byId = [...message.calls.map(({ id }) => id), ...message.marks]
        .map((id) => this.#byId.get(id))
        .find((turn) => turn !== undefined);
      const turn = byId ?? this.#byText.get(message.content.trim());
      if (turn === undefined) continue;
      const isOfOther = this.#all[this.#all[turn]!.root]!.setting !== setting;
      if (isOfOther && this.#isLifted(turn, environment)) found.lifted = turn;
      if (!isOfOther || byId !== undefined) found.repeated = turn;
    }
    return found;
  }

  /** True if a conversation has a root's text as an assistant turn, but not the request that the root answered. */
  #isLifted(turn: number, environment: readonly ClientMessage[]): boolean {
    const { parent, record, turn: sampled } = this.#nodes[turn]!;
    if (parent !== undefined || sampled.calls.length > 0) return false;
    const order = record.environment.at(-1)?.content;
    return environment.every(({ content }) => content !== order);
  }

  /**
   * Finds the call that started a conversation: the call with the text of a user's message before the first assistant
   * turn.
   */
  #calledBy(
    environment: readonly ClientMessage[],
    { isSubagent }: ClientLink,
  ): Pick<TurnEvidence, "calledBy"> {
    const counts = ({ turn, length }: PassedText): boolean =>
      length >= minPromptLength || isSubagent || !this.#continued.has(turn);
    const end = environment.findIndex(({ role }) => role === "assistant");
    const turns = environment
      .slice(0, end === -1 ? environment.length : end)
      .flatMap(({ role, content }) =>
        role === "user" ? (this.#passed.findIn(content, counts) ?? []) : [],
      );
    return turns.length === 0 ? {} : { calledBy: Math.max(...turns) };
  }
}

/** Returns the evidence of a session's turns. */
export function evidenceOf(nodes: readonly TurnNode<LineageTurn>[]): readonly TurnEvidence[] {
  const collector = new EvidenceCollector();
  for (const node of nodes) collector.add(node);
  return collector.all;
}

function systemOf([first]: readonly ClientMessage[]): string {
  return first?.role === "system" ? first.content : "";
}

function settingOf({ tools, record }: TurnNode<LineageTurn>): string {
  return `${tools} ${digest(systemOf(record.environment).replaceAll(billingLine, ""))}`;
}

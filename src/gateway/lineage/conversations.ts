import type { TurnEdge, TurnLink, TurnRole } from "../../episode/turn-lineage.ts";
import { windowName } from "./client-labels.ts";
import type { TurnEvidence } from "./turn-evidence.ts";

/** One of the agent's conversations: a root, or the part of a tree that a sub-agent continues. */
interface Conversation {
  readonly role: TurnRole;
  /** Index of its first turn. */
  readonly first: number;
}

/**
 * The conversations of a session. A conversation that was compacted or rewritten keeps its role in
 * the root that it continues in.
 */
export class Conversations {
  readonly #evidence: readonly TurnEvidence[];
  readonly #of: Conversation[] = [];
  readonly #children: number[];
  /** The first root that uses each summary. */
  readonly #usedBy = new Map<number, number>();
  /** The last turn that continues each turn, or that uses its text. */
  readonly #continuedBy = new Map<number, number>();
  /** The roles of turns with another role than their conversation. */
  readonly ownRoles = new Map<number, TurnRole>();
  readonly links = new Map<number, TurnLink>();
  /** The first turn of each request that was sampled several times. */
  readonly #firstOf = new Map<string, number>();
  /** The newest turn of each thread, and of each window of a thread that asks for a summary. */
  readonly #newest = new Map<string, number>();
  #hasMain = false;

  constructor(evidence: readonly TurnEvidence[]) {
    this.#evidence = evidence;
    this.#children = evidence.map(() => 0);
    for (const { index, parent } of evidence) {
      if (parent === undefined) continue;
      this.#children[parent]!++;
      this.#continue(parent, index);
    }
    for (const turn of evidence) this.#place(turn);
    for (const turn of evidence) this.#linkBranch(turn);
  }

  roleOf(turn: number): TurnRole {
    return this.ownRoles.get(turn) ?? this.#of[turn]!.role;
  }

  /** Returns the first root that uses the turn as a summary, or `undefined`. */
  usedBy(turn: number): number | undefined {
    return this.#usedBy.get(turn);
  }

  /** Returns the last turn that continues a turn or uses its text, or `undefined`. */
  continuedBy(turn: number): number | undefined {
    return this.#continuedBy.get(turn);
  }

  #continue(turn: number, by: number): void {
    this.#continuedBy.set(turn, Math.max(by, this.#continuedBy.get(turn) ?? by));
  }

  /** True if a turn is a reply to a request for a summary of its conversation. */
  isSummary(turn: number): boolean {
    return this.ownRoles.get(turn) === "compaction";
  }

  #place(turn: TurnEvidence): void {
    const { index, parent, request, link } = turn;
    this.#of.push(parent === undefined ? this.#placeRoot(turn) : this.#placeNext(turn, parent));
    if (link.isCompaction) this.markSummary(index);
    this.#findReturn(turn);
    if (!this.#firstOf.has(request)) this.#firstOf.set(request, index);
    if (link.thread === undefined) return;
    if (link.isCompaction) this.#newest.set(windowName(link), index);
    else this.#newest.set(link.thread, index);
  }

  #placeRoot(turn: TurnEvidence): Conversation {
    const { index, link, isTitle, calledBy, repeated, request } = turn;
    const start = (role: TurnRole): Conversation => ({ role, first: index });
    if (isTitle) return start("title");
    if (link.isCompaction) return this.#conversationOf(this.#compactedBy(turn)) ?? start("unknown");
    const summary = this.#summaryUsedBy(turn);
    if (summary !== undefined) return this.#useSummary(turn, summary);
    const same = this.#firstOf.get(request);
    if (same !== undefined) {
      const from = this.links.get(same);
      if (from !== undefined) this.links.set(index, from);
      return this.#of[same]!;
    }
    const before = repeated === undefined ? undefined : this.#evidence[repeated]!.link.thread;
    if (link.isSubagent && before !== link.thread) {
      this.#linkCall(turn);
      return start("subagent");
    }
    if (repeated !== undefined) {
      this.#continue(repeated, index);
      this.links.set(index, { turn: repeated, edge: "continuation" });
      return this.#of[repeated]!;
    }
    if (calledBy !== undefined) {
      this.#linkCall(turn);
      return start("subagent");
    }
    if (this.#hasMain) return start("unknown");
    this.#hasMain = true;
    return start("main");
  }

  #placeNext(turn: TurnEvidence, parent: number): Conversation {
    const { index, link } = turn;
    const before = this.#evidence[parent]!.link;
    if (!link.isSubagent || link.thread === before.thread) return this.#of[parent]!;
    this.#linkCall(turn);
    return { role: "subagent", first: index };
  }

  #conversationOf(turn: number | undefined): Conversation | undefined {
    return turn === undefined ? undefined : this.#of[turn];
  }

  #linkCall({ index, calledBy }: TurnEvidence): void {
    if (calledBy === undefined) return;
    this.#continue(calledBy, index);
    this.links.set(index, { turn: calledBy, edge: "subagent_call" });
  }

  /** Returns the last turn of the conversation that a request for a summary repeats, or that its client names. */
  #compactedBy({ repeated, link }: Pick<TurnEvidence, "repeated" | "link">): number | undefined {
    return repeated ?? (link.isCompaction ? this.#newest.get(link.thread ?? "") : undefined);
  }

  /** Records that a turn is a reply to a request for a summary of its history. */
  markSummary(index: number): void {
    this.ownRoles.set(index, "compaction");
    const { parent, ...turn } = this.#evidence[index]!;
    const compacted = parent ?? this.#compactedBy(turn);
    if (compacted === undefined || this.links.get(index)?.edge === "compaction") return;
    if (parent === undefined) this.#continue(compacted, index);
    this.links.set(index, { turn: compacted, edge: "compaction_attempt" });
  }

  /** Finds the summary that a root begins with, and the conversation that the root continues. */
  #summaryUsedBy(turn: TurnEvidence) {
    const { quoted, lifted, link } = turn;
    for (const summary of quoted.toReversed()) {
      const compacted = this.#historyOf(summary, turn);
      if (compacted === undefined || this.#isNewCall(turn, compacted)) continue;
      return { summary, compacted };
    }
    if (lifted !== undefined) {
      const compacted = this.#sameSetting(turn, lifted);
      if (compacted !== undefined) return { summary: lifted, compacted };
    }
    if (link.thread === undefined || link.window === undefined) return undefined;
    const before = { thread: link.thread, window: link.window - 1 };
    const marked = this.#newest.get(windowName(before));
    return marked === undefined ? undefined : { summary: marked, compacted: marked };
  }

  /**
   * Returns a turn of the conversation that a quoted turn summarises; `undefined` if the quoted turn cannot be a
   * summary. It can be one if no turn continues it, and if the root continues the conversation before it.
   */
  #historyOf(quoted: number, turn: TurnEvidence): number | undefined {
    if (this.#children[quoted]! > 0) return undefined;
    const { parent, repeated, link } = this.#evidence[quoted]!;
    const own = parent ?? repeated;
    if (own !== undefined && this.#isAlike(own, turn)) return own;
    if (link.isCompaction && link.thread === turn.link.thread) return quoted;
    const again = turn.repeated;
    const isReport = this.#of[quoted]!.role === "subagent";
    return again !== undefined && !isReport && this.#isAlike(again, turn) ? again : undefined;
  }

  /** True if a root was started by another call than the conversation of the earlier turn. */
  #isNewCall({ calledBy, link }: TurnEvidence, earlier: number): boolean {
    if (calledBy === undefined || link.thread !== undefined) return false;
    return this.links.get(this.#of[earlier]!.first)?.turn !== calledBy;
  }

  /**
   * True if a root is of the same conversation as an earlier turn: both have the same name, or without names the same
   * setting.
   */
  #isAlike(earlier: number, { link, setting }: TurnEvidence): boolean {
    const { root, link: before } = this.#evidence[earlier]!;
    if (link.thread !== undefined) return link.thread === before.thread;
    return this.#evidence[root]!.setting === setting;
  }

  /** Returns the newest earlier root with the setting of this root, or `undefined`. */
  #sameSetting({ index, setting, link }: TurnEvidence, summary: number): number | undefined {
    const found = this.#evidence.findLast(
      (each) =>
        each.index < index &&
        each.index !== summary &&
        each.setting === setting &&
        each.link.thread === link.thread,
    );
    return found?.index;
  }

  #useSummary(
    { index }: TurnEvidence,
    { summary, compacted }: { readonly summary: number; readonly compacted: number },
  ): Conversation {
    if (!this.#usedBy.has(summary)) this.#usedBy.set(summary, index);
    this.#continue(summary, index);
    this.links.set(index, { turn: summary, edge: "compaction" });
    if (!this.isSummary(summary)) this.markSummary(summary);
    if (!this.links.has(summary)) this.#linkLifted(summary, compacted);
    return this.#of[compacted]!;
  }

  /** Links a summary to the last turn of the conversation that it replaces. */
  #linkLifted(summary: number, compacted: number): void {
    const conversation = this.#of[compacted];
    const last = this.#of.findLastIndex((each, at) => at < summary && each === conversation);
    if (last !== -1) this.links.set(summary, { turn: last, edge: "compaction_attempt" });
  }

  /** Links a turn to the sub-agent whose last text it received. */
  #findReturn({ index, quoted, parent }: TurnEvidence): void {
    if (parent === undefined) return;
    const returned = quoted.findLast(
      (turn) =>
        this.#of[turn]!.role === "subagent" &&
        this.#of[turn] !== this.#of[index] &&
        this.#children[turn] === 0,
    );
    if (returned === undefined) return;
    for (const turn of quoted) {
      if (this.#of[turn]!.role === "subagent") this.#continue(turn, index);
    }
    if (!this.links.has(index)) this.links.set(index, { turn: returned, edge: "subagent_return" });
  }

  /** Links the first turn of a branch to the turn that it shares with other branches. */
  #linkBranch({ index, parent }: TurnEvidence): void {
    if (parent === undefined || this.links.has(index) || this.#children[parent]! < 2) return;
    const edge: TurnEdge = this.isSummary(index) ? "compaction_attempt" : "continuation";
    this.links.set(index, { turn: parent, edge });
  }
}

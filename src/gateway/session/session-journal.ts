import type { GatewayCounts } from "../../episode/gateway-counters.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { sessionsFile } from "../../run/folder/folder-journals.ts";
import type { JsonlJournal } from "../../run/disk/jsonl-journal.ts";
import type { RunFolder } from "../../run/folder/run-folder.ts";
import type { RequestedTurn } from "../conversation.ts";
import type { Placement } from "../tree/session-tree.ts";
import type { TurnNode } from "../tree/turn-node.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import { type JournalEntry, writtenTools } from "./journal-entry.ts";
import { type RestoredSessions, restoreSessions } from "./restore-sessions.ts";
import type { SessionStore } from "./session-store.ts";
import type { GatewaySession, SessionReward } from "./session.ts";
import type { SessionEnd } from "./to-episode.ts";

/** Options of a session journal. */
interface SessionJournalOptions {
  readonly store: SessionStore;
  /** Removes registered secrets from metadata, rewards and failures. */
  readonly clean: <Value>(value: Value) => Value;
}

/**
 * Records the events of all sessions line by line, so that another process can continue them. A
 * turn is on disk before its client receives the end of the reply. Keys are recorded as hashes.
 */
export class SessionJournal implements AsyncDisposable {
  readonly #journal: JsonlJournal;
  readonly #runId: string;
  readonly #clean: SessionJournalOptions["clean"];
  readonly #restored: RestoredSessions;

  private constructor(
    journal: JsonlJournal,
    about: {
      readonly runId: string;
      readonly clean: SessionJournalOptions["clean"];
      readonly restored: RestoredSessions;
    },
  ) {
    this.#journal = journal;
    this.#runId = about.runId;
    this.#clean = about.clean;
    this.#restored = about.restored;
  }

  /**
   * Opens the journal of a run's folder and restores the run's unfinished sessions, and finished
   * ones without an episode. The journal is closed with the folder.
   *
   * @throws UsageError if the journal cannot be read or written.
   */
  static async open(
    folder: Pick<RunFolder, "openJournal" | "manifest" | "finished">,
    { store, clean }: SessionJournalOptions,
  ): Promise<SessionJournal> {
    const { runId } = folder.manifest;
    const journal = await folder.openJournal(sessionsFile);
    const restored = await restoreSessions(journal, { store, runId, written: folder.finished });
    return new SessionJournal(journal, { runId, clean, restored });
  }

  /** Messages for the operator about the restored sessions. */
  get notes(): readonly string[] {
    return this.#restored.notes;
  }

  /** The counts of earlier processes. */
  get counts(): GatewayCounts {
    return this.#restored.counts;
  }

  /** Sessions that an earlier process finished and that have no episode, with their ends. */
  get withoutEpisode(): RestoredSessions["withoutEpisode"] {
    return this.#restored.withoutEpisode;
  }

  async opened({ identity }: GatewaySession): Promise<void> {
    const written = { ...identity, metadata: this.#clean(identity.metadata) };
    await this.#append({ type: "opened", run: this.#runId, identity: written });
  }

  async turn(
    { identity: { sessionId }, requestCount }: GatewaySession,
    { key }: Placement<GatewayTurn>,
    node: TurnNode<GatewayTurn>,
    tools: RequestedTurn["tools"],
    counts: Partial<GatewayCounts>,
  ): Promise<void> {
    const { environment, holdsAssistant } = key;
    const place =
      node.parent === undefined
        ? { tools: writtenTools(tools) }
        : { parentIndex: this.#numberOf(sessionId, node.parent) };
    await this.#append({
      type: "turn",
      sessionId,
      index: this.#numberOf(sessionId, node),
      requestCount,
      ...(node.cause !== undefined && { cause: node.cause }),
      ...place,
      key: { environment, holdsAssistant },
      parts: node.turn.parts,
      record: node.record,
      counts: this.#clean(counts),
    });
  }

  /** Records counts that no line of a turn has. */
  async counted(counts: Partial<GatewayCounts>): Promise<void> {
    await this.#append({ type: "counted", run: this.#runId, counts: this.#clean(counts) });
  }

  async delivered(
    { identity: { sessionId } }: GatewaySession,
    node: TurnNode<GatewayTurn>,
  ): Promise<void> {
    await this.#append({ type: "delivered", sessionId, index: this.#numberOf(sessionId, node) });
  }

  async reward({ identity }: GatewaySession, reward: SessionReward): Promise<void> {
    const { sessionId } = identity;
    await this.#append({ type: "reward", sessionId, reward: this.#clean(reward) });
  }

  async finished(
    { identity: { sessionId }, tree }: GatewaySession,
    { reward, failure, atMs }: SessionEnd,
  ): Promise<void> {
    const end = this.#clean({ ...withoutUndefined({ reward, failure }), atMs });
    await this.#append({ type: "finished", sessionId, turnCount: tree.nodes.length, end });
    this.#restored.numbers.delete(sessionId);
  }

  #numberOf(sessionId: string, { index }: TurnNode<GatewayTurn>): number {
    return this.#restored.numbers.get(sessionId)?.numberOf(index) ?? index;
  }

  async #append(entry: JournalEntry): Promise<void> {
    await this.#journal.append(entry);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#journal[Symbol.asyncDispose]();
  }
}

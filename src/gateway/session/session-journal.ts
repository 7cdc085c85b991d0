import path from "node:path";
import { createReadStream } from "node:fs";
import { UsageError } from "../../errors.ts";
import { splitLines } from "../../internal/split-lines.ts";
import { toolsFromOpenAi } from "../../message.ts";
import { toPlainJson, toPyValue, type PlainJson } from "../../python/value.ts";
import { JsonlJournal } from "../../run/jsonl-journal.ts";
import type { AskedTurn } from "../conversation.ts";
import type { Placement, PlaceKey } from "../tree/session-tree.ts";
import { toSentTurn, type RootCause, type TurnNode } from "../tree/turn-node.ts";
import type { ReplyPart } from "../conversation.ts";
import type { GatewayTurn } from "./gateway-turn.ts";
import type { SessionStore } from "./session-store.ts";
import type { GatewaySession, SessionIdentity, SessionReward } from "./session.ts";

/** The file in a run's folder that holds what open sessions sampled. */
export const journalFile = "gateway.jsonl";

/** What a line of the journal says. */
type Entry =
  | { readonly type: "opened"; readonly identity: SessionIdentity }
  | {
      readonly type: "turn";
      readonly sessionId: string;
      readonly index: number;
      readonly parentIndex?: number;
      readonly cause?: RootCause;
      readonly key: Pick<PlaceKey, "environment" | "holdsAssistant">;
      /** Only for roots: what continues one has the same. */
      readonly tools?: readonly unknown[];
      readonly parts: readonly ReplyPart[];
      readonly record: GatewayTurn;
    }
  | { readonly type: "delivered"; readonly sessionId: string; readonly index: number }
  | { readonly type: "reward"; readonly sessionId: string; readonly reward: SessionReward }
  | { readonly type: "finished"; readonly sessionId: string };

/**
 * Everything that happens in sessions, line by line, so that another process can go on with them: a
 * turn is in it before its client has the end of the reply. Tokens are not in it, only their hashes.
 */
export class SessionJournal implements AsyncDisposable {
  readonly #journal: JsonlJournal;

  private constructor(journal: JsonlJournal) {
    this.#journal = journal;
  }

  /**
   * Opens a folder's journal, and the sessions in it that are not finished.
   *
   * @param isWritten - Whether an episode is in the folder already: a crash may have come before its
   *   session's last line.
   * @throws UsageError where it cannot be read or written.
   */
  static async open(
    dir: string,
    store: SessionStore,
    isWritten: (rolloutId: string) => boolean,
  ): Promise<SessionJournal> {
    const file = path.join(dir, journalFile);
    const journal = new SessionJournal(await JsonlJournal.open(file));
    await restore(file, store, isWritten);
    return journal;
  }

  async opened({ identity }: GatewaySession): Promise<void> {
    await this.#append({ type: "opened", identity });
  }

  async turn(
    { identity }: GatewaySession,
    { key }: Placement<GatewayTurn>,
    node: TurnNode<GatewayTurn>,
    tools: AskedTurn["tools"],
  ): Promise<void> {
    const { environment, holdsAssistant } = key;
    const place =
      node.parent === undefined
        ? { tools: tools.map(({ openai }) => toPlainJson(openai)) }
        : { parentIndex: node.parent.index };
    await this.#append({
      type: "turn",
      sessionId: identity.sessionId,
      index: node.index,
      ...(node.cause === undefined ? {} : { cause: node.cause }),
      ...place,
      key: { environment, holdsAssistant },
      parts: node.turn.parts,
      record: node.record,
    });
  }

  async delivered({ identity }: GatewaySession, { index }: TurnNode<GatewayTurn>): Promise<void> {
    await this.#append({ type: "delivered", sessionId: identity.sessionId, index });
  }

  async reward({ identity }: GatewaySession, reward: SessionReward): Promise<void> {
    await this.#append({ type: "reward", sessionId: identity.sessionId, reward });
  }

  async finished({ identity }: GatewaySession): Promise<void> {
    await this.#append({ type: "finished", sessionId: identity.sessionId });
  }

  async #append(entry: Entry): Promise<void> {
    await this.#journal.append(entry);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#journal[Symbol.asyncDispose]();
  }
}

/** Reads a journal twice: which sessions are finished, and then what the others hold. */
async function restore(
  file: string,
  store: SessionStore,
  isWritten: (rolloutId: string) => boolean,
): Promise<void> {
  const finished = new Set<string>();
  for await (const entry of readEntries(file)) {
    if (entry.type === "finished") finished.add(entry.sessionId);
    if (entry.type !== "opened") continue;
    const { sessionId, taskId, sampleIndex } = entry.identity;
    if (isWritten(`${taskId}#${sampleIndex}`)) finished.add(sessionId);
  }
  for await (const entry of readEntries(file)) {
    if (entry.type === "opened") {
      const isOver = finished.has(entry.identity.sessionId);
      if (isOver) store.restoreFinished(entry.identity);
      else store.restore(entry.identity);
      continue;
    }
    const session = finished.has(entry.sessionId) ? undefined : store.byId(entry.sessionId);
    if (session === undefined) continue;
    if (entry.type === "reward") session.reward = entry.reward;
    if (entry.type === "delivered" && session.tree.nodes[entry.index] !== undefined) {
      session.tree.setDelivered(entry, true);
    }
    if (entry.type === "turn") restoreTurn(session, entry, file);
  }
}

function restoreTurn(
  session: GatewaySession,
  entry: Extract<Entry, { readonly type: "turn" }>,
  file: string,
): void {
  const { parentIndex, cause, key, parts, record, index } = entry;
  const isNext = index === session.tree.nodes.length;
  const hasParent = parentIndex === undefined || session.tree.nodes[parentIndex] !== undefined;
  if (!isNext || !hasParent) {
    throw new UsageError(
      `Cannot go on with ${file}: turn ${index} of ${entry.sessionId} stands where it cannot; choose ` +
        "another --out",
    );
  }
  const tools = toolsFromOpenAi(toPyValue((entry.tools ?? []) as PlainJson), file);
  session.restoreTurn(
    { parentIndex, cause, tools, key },
    { turn: toSentTurn(parts), record, isDelivered: false },
  );
}

async function* readEntries(file: string): AsyncGenerator<Entry> {
  for await (const text of splitLines(createReadStream(file))) {
    if (text.trim() !== "") yield JSON.parse(text) as Entry;
  }
}

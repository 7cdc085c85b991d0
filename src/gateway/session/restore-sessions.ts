import { UsageError } from "../../errors.ts";
import { toolsFromOpenAi } from "../../message.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { GatewayCounters, type GatewayCounts } from "../../episode/gateway-counters.ts";
import type { FinishedEpisode } from "../../run/folder/episode-row.ts";
import type { JsonlJournal } from "../../run/disk/jsonl-journal.ts";
import { isOfOtherRun } from "../../run/recording/recording-line.ts";
import { toSentTurn } from "../tree/turn-node.ts";
import {
  type FinishedEntry,
  type JournalEntry,
  type TurnEntry,
  parseEntry,
} from "./journal-entry.ts";
import type { SessionStore } from "./session-store.ts";
import type { GatewaySession, SessionIdentity } from "./session.ts";
import type { SessionEnd } from "./to-episode.ts";
import { TurnNumbers } from "./turn-numbers.ts";

/** A finished session without an episode in the folder. */
interface SessionWithoutEpisode {
  readonly session: GatewaySession;
  /** The end as the journal recorded it. */
  readonly end: SessionEnd;
}

/** The sessions of earlier processes. */
export interface RestoredSessions {
  /** The turn numbers of the open sessions, by session id. */
  readonly numbers: Map<string, TurnNumbers>;
  readonly withoutEpisode: readonly SessionWithoutEpisode[];
  /** The counts of earlier processes, also for finished sessions. */
  readonly counts: GatewayCounts;
  /** Messages for the operator. */
  readonly notes: readonly string[];
}

/** The inputs beside the journal. */
interface RestoreOptions {
  readonly store: SessionStore;
  /** The id of the folder's run. */
  readonly runId: string;
  /**
   * The episodes in the folder. After a crash, a session's episode may be present although the
   * journal lacks its last entry.
   */
  readonly written: readonly Pick<FinishedEpisode, "rolloutId" | "taskIndex" | "sampleIndex">[];
}

/**
 * Restores the sessions of a journal that have no episode in the folder. Skips damaged lines with
 * the turns that depend on them, and sessions of other runs.
 *
 * @throws UsageError if the journal cannot be read.
 */
export async function restoreSessions(
  journal: JsonlJournal,
  { store, runId, written }: RestoreOptions,
): Promise<RestoredSessions> {
  const found = await survey(journal, { runId, written });
  const numbers = new Map<string, TurnNumbers>();
  const counters = new GatewayCounters();
  let skippedCount = 0;
  for await (const entry of readEntries(journal)) {
    if (entry === undefined) continue;
    if (entry.type === "counted") {
      if (!isOfOtherRun(entry, runId)) counters.add(entry.counts);
      continue;
    }
    if (entry.type === "opened") {
      const { identity } = entry;
      const { sessionId } = identity;
      if (found.foreign.has(sessionId) || store.byId(sessionId) !== undefined) continue;
      if (found.isWritten(identity)) store.restoreFinished(identity);
      else {
        store.restore(identity);
        numbers.set(sessionId, new TurnNumbers());
      }
      continue;
    }
    if (entry.type === "turn" && !found.foreign.has(entry.sessionId)) {
      counters.add(entry.counts ?? {});
    }
    const own = numbers.get(entry.sessionId);
    const session = store.byId(entry.sessionId);
    if (session !== undefined && own !== undefined) {
      if (!applyEntry(session, own, entry)) skippedCount++;
    } else if (!found.opened.has(entry.sessionId)) skippedCount++;
  }
  for (const { rolloutId, taskIndex, sampleIndex } of written) {
    if (found.rolloutIds.has(rolloutId)) continue;
    const taskId = rolloutId.slice(0, rolloutId.lastIndexOf("#"));
    store.restoreWritten({ taskId, taskIndex, sampleIndex });
  }
  const { withoutEpisode, incomplete } = sortEnds(store, found);
  const { path } = journal;
  const skipped =
    skippedCount === 0 ? "" : `, and so are lines that depend on them (${skippedCount})`;
  const notes = [
    ...(found.damagedCount === 0 && skippedCount === 0
      ? []
      : [`${path} has damaged lines (${found.damagedCount}): they are skipped${skipped}`]),
    ...(found.foreign.size === 0
      ? []
      : [`${path} has sessions of another run (${found.foreign.size}): they are not continued`]),
    ...noteOf(withoutEpisode, `without an episode are written again from ${path}`),
    ...noteOf(
      incomplete,
      `without an episode cannot be written, because ${path} lacks some of their turns`,
    ),
  ];
  return { numbers, withoutEpisode, counts: counters.counts, notes };
}

/** An overview of a journal's sessions. */
interface Survey {
  readonly opened: ReadonlySet<string>;
  readonly foreign: ReadonlySet<string>;
  /** The rollout ids of the run's own sessions. */
  readonly rolloutIds: ReadonlySet<string>;
  /** The last entries of finished sessions without an episode, by session id. */
  readonly ends: ReadonlyMap<string, FinishedEntry>;
  readonly damagedCount: number;
  isWritten(identity: SessionIdentity): boolean;
}

async function survey(
  journal: JsonlJournal,
  { runId, written }: Pick<RestoreOptions, "runId" | "written">,
): Promise<Survey> {
  const writtenIds = new Set(written.map(({ rolloutId }) => rolloutId));
  const isWritten = (identity: SessionIdentity): boolean => writtenIds.has(rolloutIdOf(identity));
  const opened = new Set<string>();
  const foreign = new Set<string>();
  const rolloutIds = new Set<string>();
  const unwritten = new Set<string>();
  const ends = new Map<string, FinishedEntry>();
  let damagedCount = 0;
  for await (const entry of readEntries(journal)) {
    if (entry === undefined) damagedCount++;
    else if (entry.type === "opened") {
      const { identity } = entry;
      opened.add(identity.sessionId);
      if (isOfOtherRun(entry, runId)) foreign.add(identity.sessionId);
      else {
        rolloutIds.add(rolloutIdOf(identity));
        if (!isWritten(identity)) unwritten.add(identity.sessionId);
      }
    } else if (entry.type === "finished" && unwritten.has(entry.sessionId)) {
      ends.set(entry.sessionId, entry);
    }
  }
  return { opened, foreign, rolloutIds, ends, damagedCount, isWritten };
}

/**
 * Sorts finished sessions without an episode: those in `withoutEpisode` can be finished again, those
 * in `incomplete` lack turns.
 */
function sortEnds(store: SessionStore, { ends }: Survey) {
  const withoutEpisode: SessionWithoutEpisode[] = [];
  const incomplete: { readonly session: GatewaySession }[] = [];
  for (const [sessionId, { turnCount, end }] of ends) {
    const session = store.byId(sessionId);
    if (session === undefined) continue;
    if (turnCount === session.tree.nodes.length) withoutEpisode.push({ session, end });
    else {
      store.remove(session);
      incomplete.push({ session });
    }
  }
  return { withoutEpisode, incomplete };
}

/**
 * Applies an entry to its session.
 *
 * @returns true if the entry could be applied.
 */
function applyEntry(
  session: GatewaySession,
  numbers: TurnNumbers,
  entry: Exclude<JournalEntry, { readonly type: "opened" | "counted" }>,
): boolean {
  if (entry.type === "turn") return restoreTurn(session, numbers, entry);
  if (entry.type === "reward") session.reward = entry.reward;
  if (entry.type === "delivered") {
    const index = numbers.indexOf(entry.index);
    if (index === undefined) return false;
    session.tree.setDelivered({ index }, true);
  }
  return true;
}

function restoreTurn(session: GatewaySession, numbers: TurnNumbers, entry: TurnEntry): boolean {
  const { parentIndex: parent, cause, key, parts, record, index } = entry;
  numbers.reserve(index);
  session.skipRequests(entry.requestCount);
  const parentIndex = parent === undefined ? undefined : numbers.indexOf(parent);
  const isOrphan = parent !== undefined && parentIndex === undefined;
  if (isOrphan || numbers.indexOf(index) !== undefined) return false;
  const tools = readTools(entry);
  if (tools === undefined) return false;
  session.restoreTurn(
    { parentIndex, cause, tools, key },
    { turn: toSentTurn(parts), record, isDelivered: false },
  );
  numbers.assign(index);
  return true;
}

function readTools({ tools = "[]" }: TurnEntry): ReturnType<typeof toolsFromOpenAi> | undefined {
  try {
    return toolsFromOpenAi(parsePythonJson(tools), "tools");
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof PythonError)) throw error;
    return undefined;
  }
}

async function* readEntries(journal: JsonlJournal): AsyncGenerator<JournalEntry | undefined> {
  for await (const line of journal.lines()) yield parseEntry(line);
}

function rolloutIdOf({ taskId, sampleIndex }: SessionIdentity): string {
  return `${taskId}#${sampleIndex}`;
}

/** Maximum number of sessions to name in a message. */
const namedCount = 10;

function noteOf(
  sessions: readonly { readonly session: GatewaySession }[],
  what: string,
): readonly string[] {
  if (sessions.length === 0) return [];
  const ids = sessions.map(({ session: { identity } }) => rolloutIdOf(identity));
  const rest = ids.length > namedCount ? " and more" : "";
  return [`finished sessions ${what}: ${ids.slice(0, namedCount).join(", ")}${rest}`];
}

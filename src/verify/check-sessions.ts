import path from "node:path";
import type { Files } from "../run/disk/files.ts";
import { type ScannedLine, scanLines } from "../run/disk/line-ranges.ts";
import { storageError } from "../run/disk/storage-error.ts";
import { sessionsFile } from "../run/folder/folder-journals.ts";
import { countOf } from "../text/count-of.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import { isCount, nameOf, type RawRow } from "../trajectory/violation.ts";
import { isObject } from "../values/is-object.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** The lines of a session, as read so far. */
interface SessionLines {
  readonly rolloutId: string;
  /** The indexes of its turns. */
  readonly turns: Set<unknown>;
  /** The number of turns according to the line that ends the session. */
  turnCount?: number;
}

interface Fault {
  readonly line?: number;
  readonly detail: string;
}

/**
 * Checks the journal of a gateway's sessions against the episodes. Each line must be readable, each episode must have a
 * session, and a finished session must have all of its turns. It may have more: a later start skips turns that depend on
 * a damaged line. A killed start may lack the line that ends a session.
 *
 * @param manifest - The content of `run.json`, unchecked.
 * @throws UsageError if the disk fails.
 */
export async function checkSessions(
  { files, dir }: { readonly files: Files; readonly dir: string },
  episodes: ReadonlyMap<string, unknown>,
  manifest: RawRow,
): Promise<readonly Finding[]> {
  const file = path.join(dir, sessionsFile);
  if ((await files.facts(file)) === undefined) {
    const detail = "the file is missing, which has the turns of all sessions";
    return isGatewayRun(manifest) && episodes.size > 0 ? toFindings([{ detail }]) : [];
  }
  const faults: Fault[] = [];
  const sessions = new Map<string, SessionLines>();
  try {
    await scanLines(files, file, ({ bytes, line }: ScannedLine) => {
      const entry = parseLine(bytes.toString());
      if (!isObject(entry) || !take(sessions, entry)) {
        faults.push({ line, detail: "the line is not an entry of a session (a torn line?)" });
      }
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  const found = new Map([...sessions.values()].map((session) => [session.rolloutId, session]));
  for (const rolloutId of episodes.keys()) {
    const session = found.get(rolloutId);
    if (session === undefined) {
      faults.push({ detail: `no line opens the session of ${rolloutId}` });
      continue;
    }
    const { turns, turnCount = 0 } = session;
    if (turns.size >= turnCount) continue;
    const detail = `the session of ${rolloutId} has ${turns.size} of ${countOf(turnCount, "turn")}`;
    faults.push({ detail });
  }
  return toFindings(faults);
}

/** Adds an entry to its session. Returns false for an entry of an unknown type. */
function take(sessions: Map<string, SessionLines>, entry: RawRow): boolean {
  const { type, identity, sessionId } = entry;
  const session = sessions.get(nameOf(sessionId));
  switch (type) {
    case "opened": {
      if (!isObject(identity)) return false;
      const rolloutId = `${nameOf(identity["taskId"])}#${String(identity["sampleIndex"])}`;
      sessions.set(nameOf(identity["sessionId"]), { rolloutId, turns: new Set() });
      return true;
    }
    case "turn":
      session?.turns.add(entry["index"]);
      return true;
    case "finished": {
      const { turnCount } = entry;
      if (!isCount(turnCount)) return false;
      if (session !== undefined) session.turnCount = turnCount;
      return true;
    }
    case "counted":
    case "delivered":
    case "reward":
      return true;
    default:
      return false;
  }
}

function isGatewayRun({ found }: RawRow): boolean {
  const plan = isObject(found) ? found["plan"] : undefined;
  return isObject(plan) && plan["environment"] === "gateway";
}

function toFindings(faults: readonly Fault[]): readonly Finding[] {
  return findingsIn(
    sessionsFile,
    faults.map((fault) => ({ rule: "sessions", ...fault })),
  );
}

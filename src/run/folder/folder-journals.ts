import path from "node:path";
import type { Files } from "../disk/files.ts";
import { hasLine } from "../disk/line-ranges.ts";
import { episodesFile, samplesFile } from "./scan-claims.ts";
import { holdsGeneration, recordingFile } from "../recording/recording-line.ts";
import { setAsideName } from "../disk/set-aside.ts";
import { storageError } from "../disk/storage-error.ts";
import { eventsFile } from "./episode-events.ts";

/** The journal of a gateway's sessions. */
export const sessionsFile = "gateway.jsonl";

/**
 * The journals of a run's folder, each with a function that finds out if the journal contains samples. `RunFolder`
 * opens no other journals, so these functions are enough to decide that nothing was played in a folder.
 */
const folderJournals = {
  [samplesFile]: isNotEmpty,
  [episodesFile]: isNotEmpty,
  [recordingFile]: (files, file) => hasLine(files, file, ({ bytes }) => holdsGeneration(bytes)),
  // A client has the key of each session in this journal.
  [sessionsFile]: isNotEmpty,
  [setAsideName(samplesFile)]: isNotEmpty,
  [setAsideName(episodesFile)]: isNotEmpty,
  [eventsFile]: () => Promise.resolve(false),
} as const satisfies Readonly<Record<string, (files: Files, file: string) => Promise<boolean>>>;

/** The name of a journal in a run's folder. */
export type FolderJournal = keyof typeof folderJournals;

/**
 * True if a run's folder contains any samples, of finished or unfinished attempts.
 *
 * @throws UsageError if the disk fails.
 */
export async function holdsSampled(files: Files, dir: string): Promise<boolean> {
  for (const [name, holds] of Object.entries(folderJournals)) {
    const file = path.join(dir, name);
    try {
      if (await holds(files, file)) return true;
    } catch (error) {
      throw storageError("read", file, error);
    }
  }
  return false;
}

async function isNotEmpty(files: Files, file: string): Promise<boolean> {
  const facts = await files.facts(file);
  return facts !== undefined && facts.size > 0;
}

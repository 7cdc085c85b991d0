import path from "node:path";
import type { Files } from "../disk/files.ts";
import { hasLine } from "../disk/line-ranges.ts";
import { episodesFile, samplesFile } from "./reconcile.ts";
import { holdsGeneration, recordingFile } from "../recording/recording-line.ts";
import { setAsideName } from "../disk/set-aside.ts";
import { storageError } from "../disk/storage-error.ts";
import { eventsFile } from "./episode-events.ts";

/** The file in which a gateway keeps what happens in its sessions. */
export const sessionsFile = "gateway.jsonl";

/**
 * The files of a run's folder that grow by lines, each with how it says whether anything was sampled.
 * `RunFolder` opens no other, so that whatever keeps samples is asked before a folder is taken for one in
 * which nothing was played.
 */
const folderJournals = {
  [samplesFile]: isNotEmpty,
  [episodesFile]: isNotEmpty,
  [recordingFile]: (files, file) => hasLine(files, file, ({ bytes }) => holdsGeneration(bytes)),
  // Somebody has the key of each session in it.
  [sessionsFile]: isNotEmpty,
  [setAsideName(samplesFile)]: isNotEmpty,
  [setAsideName(episodesFile)]: isNotEmpty,
  [eventsFile]: () => Promise.resolve(false),
} as const satisfies Readonly<Record<string, (files: Files, file: string) => Promise<boolean>>>;

/** The name of such a file. */
export type FolderJournal = keyof typeof folderJournals;

/**
 * Whether a run's folder holds anything that was sampled, finished or not.
 *
 * @throws UsageError where the disk refuses.
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

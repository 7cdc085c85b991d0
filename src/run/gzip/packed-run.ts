import path from "node:path";
import { UsageError } from "../../errors.ts";
import type { Files } from "../disk/files.ts";
import { storageError } from "../disk/storage-error.ts";
import { setAsideName } from "../disk/set-aside.ts";
import { sessionsFile } from "../folder/folder-journals.ts";
import { slimeFile } from "../folder/folder-results.ts";
import { episodesFile, samplesFile } from "../folder/scan-claims.ts";
import { recordingFile } from "../recording/recording-line.ts";
import { packedName } from "./stored-files.ts";

/** The files of a run that are packed: those that grow with its tokens. */
export const largeFiles = [
  episodesFile,
  samplesFile,
  recordingFile,
  slimeFile,
  sessionsFile,
  setAsideName(episodesFile),
  setAsideName(samplesFile),
] as const;

/**
 * Checks that none of a run's files is packed, before the run is written.
 *
 * @param place - The folder, and its name in the message.
 * @throws UsageError that names the command which unpacks them, or if the disk fails.
 */
export async function assertUnpacked(
  files: Files,
  { dir, name }: { readonly dir: string; readonly name: string },
): Promise<void> {
  let names: readonly string[];
  try {
    names = await files.list(dir);
  } catch (error) {
    throw storageError("read the run folder", name, error);
  }
  const packed = largeFiles.map(packedName).find((file) => names.includes(file));
  if (packed === undefined) return;
  throw new UsageError(
    `Cannot continue the run in ${name}: it is packed (${path.join(name, packed)}); call \`turnwright unpack ${name}\` first`,
  );
}

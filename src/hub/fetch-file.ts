import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { downloadFile } from "../files/download-file.ts";
import { replaceFile, replaceLink } from "./replace-file.ts";
import type { RepositoryFile } from "./repository.ts";
import { folderOf, type Snapshot } from "./snapshot.ts";

/** Settings of `fetchFile()`. */
interface FetchFileOptions {
  /** The address of the commit's files, without a trailing slash. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Called with a file before it is downloaded. */
  readonly onFile?: ((name: string, bytes: number) => void) | undefined;
}

/**
 * Downloads a file to a snapshot, unless the snapshot has it with the announced content. Leaves
 * files alone that another process is writing or has left unfinished.
 *
 * @throws UsageError if the file cannot be downloaded or has another content.
 */
export async function fetchFile(
  snapshot: Snapshot,
  file: RepositoryFile,
  { base, headers, signal, onFile }: FetchFileOptions,
): Promise<void> {
  const place = path.join(folderOf(snapshot), file.name);
  if (await hasContent(place, file)) return;
  const blob = path.join(snapshot.modelDir, "blobs", file.hash);
  if (!(await hasContent(blob, file))) {
    onFile?.(file.name, file.bytes);
    const url = `${base}/${file.name}`;
    await replaceFile(blob, async (part) => {
      try {
        await downloadFile({ url, file: part, maxBytes: file.bytes, signal, headers });
      } finally {
        await rm(`${part}.tag`, { force: true });
      }
      if (await hasContent(part, file)) return;
      throw new UsageError(
        `Cannot use ${url}: its content is not what the hub announced, try again`,
      );
    });
  }
  await replaceLink(place, blob);
}

/** True if a file has the hash that the hub announced. */
async function hasContent(file: string, { hash }: RepositoryFile): Promise<boolean> {
  const content = await readFile(file).catch(() => undefined);
  if (content === undefined) return false;
  return hash.length === 64
    ? createHash("sha256").update(content).digest("hex") === hash
    : createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex") === hash;
}

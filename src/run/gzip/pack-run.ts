import path from "node:path";
import { UsageError } from "../../errors.ts";
import { diskFiles, type Files, readBlocks, withFile } from "../disk/files.ts";
import type { LockOptions } from "../disk/lock-options.ts";
import { RunLock } from "../disk/run-lock.ts";
import { storageError } from "../disk/storage-error.ts";
import { nextName, writeAtomically } from "../disk/write-atomically.ts";
import { manifestFile } from "../folder/run-manifest.ts";
import { haveSameContent } from "./have-same-content.ts";
import { packContent } from "./pack-content.ts";
import { largeFiles } from "./packed-run.ts";
import { packedName, withPacked } from "./stored-files.ts";

/** A file that is packed, or was packed until now. Sizes are in bytes. JSON-able. */
export interface RepackedFile {
  /** The file's name in the run's folder, without `.gz`. */
  readonly name: string;
  readonly unpackedSize: number;
  readonly packedSize: number;
}

/** Options of `packRun()` and `unpackRun()`. */
export interface RepackOptions {
  readonly files?: Files;
  readonly lock?: Omit<LockOptions, "files">;
}

/**
 * Compresses the large files of a run in place. Compares each packed file with its original before it removes the
 * original. A process that is killed at any moment loses nothing, and the next call continues.
 *
 * @returns all packed files of the run, also those of earlier calls.
 * @throws UsageError if `dir` is not a run's folder, if another process writes the run, or if the disk fails.
 */
export async function packRun(
  dir: string,
  options: RepackOptions = {},
): Promise<readonly RepackedFile[]> {
  return await repack("pack", { dir, ...options }, async ({ files, file, removeSafely }) => {
    if ((await files.facts(file)) !== undefined) {
      const packed = packedName(file);
      if ((await files.facts(packed)) === undefined) {
        await withFile(files, file, async (source) => {
          await writeAtomically(packed, packContent(source), { files });
        });
      }
      await removeSafely(file);
    }
    return await sizesOf(files, file);
  });
}

/**
 * Restores the files that `packRun()` compressed, byte for byte. A process that is killed at any moment loses nothing,
 * and the next call continues.
 *
 * @returns the files that this call restored.
 * @throws UsageError if `dir` is not a run's folder, if another process writes the run, if a packed file is damaged, or
 *   if the disk fails.
 */
export async function unpackRun(
  dir: string,
  options: RepackOptions = {},
): Promise<readonly RepackedFile[]> {
  return await repack("unpack", { dir, ...options }, async ({ files, file, removeSafely }) => {
    const sizes = await sizesOf(files, file);
    if (sizes === undefined) return undefined;
    const packed = packedName(file);
    if ((await files.facts(file)) === undefined) {
      await withFile(withPacked(files), packed, async (source) => {
        await writeAtomically(file, readBlocks(source), { files });
      });
    }
    await removeSafely(packed);
    return sizes;
  });
}

/** A file of a run that is packed or unpacked. */
interface RepackPlace {
  readonly files: Files;
  /** The path of the unpacked file. */
  readonly file: string;
  /** Removes one of the two files if both have the same content. */
  readonly removeSafely: (name: string) => Promise<void>;
}

/** Locks a run and calls `work` for each of its large files. */
async function repack(
  doing: "pack" | "unpack",
  { dir, files = diskFiles, lock }: RepackOptions & { readonly dir: string },
  work: (place: RepackPlace) => Promise<Omit<RepackedFile, "name"> | undefined>,
): Promise<readonly RepackedFile[]> {
  const folder = path.resolve(dir);
  await requireRun(files, { doing, dir, folder });
  await using held = await RunLock.take(folder, { ...lock, files });
  const repacked: RepackedFile[] = [];
  for (const name of largeFiles) {
    const file = path.join(folder, name);
    const removeSafely = async (removed: string): Promise<void> => {
      if (!(await haveSameContent(withPacked(files), file, packedName(file)))) {
        throw new UsageError(
          `Cannot ${doing} ${file}: it differs from ${packedName(file)}; find out which one is right, and move the ` +
            "other one away",
        );
      }
      await held.confirm();
      await files.remove(removed);
    };
    try {
      await held.confirm();
      for (const written of [file, packedName(file)]) await files.remove(nextName(written));
      const sizes = await work({ files, file, removeSafely });
      if (sizes !== undefined) repacked.push({ name, ...sizes });
    } catch (error) {
      throw storageError(doing, file, error);
    }
  }
  await files.syncFolder(folder);
  return repacked;
}

async function requireRun(
  files: Files,
  { doing, dir, folder }: { readonly doing: string; readonly dir: string; readonly folder: string },
): Promise<void> {
  try {
    if ((await files.facts(path.join(folder, manifestFile))) !== undefined) return;
  } catch (error) {
    throw storageError(doing, dir, error);
  }
  throw new UsageError(
    `Cannot ${doing} ${dir}: it has no ${manifestFile}, expected a run's folder`,
  );
}

/** Returns both sizes of a packed file; `undefined` if the file is not packed. */
async function sizesOf(
  files: Files,
  file: string,
): Promise<Omit<RepackedFile, "name"> | undefined> {
  const packed = await files.facts(packedName(file));
  const content = packed && (await withPacked(files).facts(packedName(file)));
  return content && { unpackedSize: content.size, packedSize: packed.size };
}

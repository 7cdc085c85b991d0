import path from "node:path";
import type { ColumnSource } from "../../columns/column-source.ts";
import { UsageError } from "../../errors.ts";
import { codeOf, type Files, readBytes } from "../disk/files.ts";
import { storageError } from "../disk/storage-error.ts";
import { storedFiles } from "../gzip/stored-files.ts";
import { columnsFolder, ColumnIndex, type ColumnPlace } from "./column-index.ts";
import { OpenFiles } from "./open-files.ts";

/** The columns of a run's folder, open for reading. */
export interface ColumnFolder extends ColumnSource, AsyncDisposable {
  /** Returns true if the part's file was freed after its rows were acknowledged. */
  isFreed(hash: string): Promise<boolean>;
  /** Returns the position of a part's bytes. `undefined` if no file has the part. */
  placeOf(hash: string): Promise<ColumnPlace | undefined>;
  /** The absolute path of the columns' folder. */
  readonly dir: string;
  /**
   * Closes a file that was removed, so that the system frees its bytes. Its parts are then looked up in other files.
   */
  forget(file: string): Promise<void>;
}

/** Maximum number of files that stay open. */
const mostOpen = 64;

/**
 * Opens the columns of a run's folder for reading, also while the run is being written. A folder without columns has no
 * parts.
 *
 * @param runDir - The run's folder.
 */
export function openColumnFolder(runDir: string, files: Files = storedFiles): ColumnFolder {
  return openColumnsIn(path.resolve(runDir, columnsFolder), { files });
}

/**
 * Opens a folder of columns for reading, also while it is being written. It may not exist.
 *
 * @param dir - The absolute path of the columns' folder itself.
 * @param options - `onPlace` is called for each place that is read from an index.
 */
export function openColumnsIn(
  dir: string,
  {
    files = storedFiles,
    onPlace,
  }: { readonly files?: Files; readonly onPlace?: (place: ColumnPlace) => void } = {},
): ColumnFolder {
  const index = new ColumnIndex(dir, files, onPlace);
  const open = new OpenFiles((name) => files.open(path.join(dir, name), "read"), mostOpen);

  async function placeOf(hash: string): Promise<ColumnPlace | undefined> {
    if (index.find(hash) === undefined) await index.refresh();
    return index.find(hash);
  }

  async function isFreed(hash: string): Promise<boolean> {
    return (await placeOf(hash)) === undefined && index.isFreed(hash);
  }

  /** Reads a range of a part. Returns `undefined` if its file was removed. */
  async function readAt(
    place: ColumnPlace,
    { start, end }: { readonly start: number; readonly end: number },
  ): Promise<Buffer | undefined> {
    const range = { start: place.at + start, end: place.at + end };
    try {
      return await open.use(place.file, (file) => readBytes(file, range));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw storageError("read", path.join(dir, place.file), error);
    }
  }

  return {
    dir,
    placeOf,
    isFreed,
    async forget(file) {
      await open.forget(file);
      await index.rebuild();
    },
    async read({ hash, size }, range = { start: 0, end: size }) {
      const place = await placeOf(hash);
      if (place === undefined) {
        const why = index.isFreed(hash)
          ? "its file was freed after its rows were acknowledged"
          : "no index names it with a file that exists";
        throw missing(dir, hash, why);
      }
      const { start, end } = range;
      if (place.size !== size || start < 0 || end > size || start > end) {
        throw missing(
          dir,
          hash,
          `it has ${place.size} bytes, and ${start} to ${end} of ${size} are asked for`,
        );
      }
      let bytes = await readAt(place, range);
      if (bytes === undefined) {
        await index.rebuild();
        const other = index.find(hash);
        if (other !== undefined) bytes = await readAt(other, range);
      }
      if (bytes === undefined) throw missing(dir, hash, `${place.file} does not exist`);
      if (bytes.length === end - start) return bytes;
      throw missing(dir, hash, `${place.file} ends before it`);
    },
    async [Symbol.asyncDispose]() {
      await open.close();
    },
  };
}

function missing(dir: string, hash: string, why: string): UsageError {
  return new UsageError(
    `Cannot read the column part ${hash} from ${dir}: ${why}; copy the run's folder again with its ${columnsFolder} folder`,
  );
}

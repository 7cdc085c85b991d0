import path from "node:path";
import type { ColumnSource } from "../../columns/column-source.ts";
import { UsageError } from "../../errors.ts";
import { codeOf, type Files, type OpenFile, readBytes } from "../disk/files.ts";
import { storageError } from "../disk/storage-error.ts";
import { storedFiles } from "../gzip/stored-files.ts";
import { columnsFolder, ColumnIndex, type ColumnPlace } from "./column-index.ts";

/** The columns of a run's folder, open for reading. */
export interface ColumnFolder extends ColumnSource, AsyncDisposable {
  /** The place of a part's bytes. `undefined` if no file has it. */
  placeOf(hash: string): Promise<ColumnPlace | undefined>;
  /** The absolute path of the columns' folder. */
  readonly dir: string;
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
  const dir = path.resolve(runDir, columnsFolder);
  const index = new ColumnIndex(dir, files);
  const open = new Map<string, Promise<OpenFile>>();

  async function placeOf(hash: string): Promise<ColumnPlace | undefined> {
    if (index.find(hash) === undefined) await index.refresh();
    return index.find(hash);
  }

  /** Closes the file that was opened first. */
  async function makeRoom(): Promise<void> {
    if (open.size < mostOpen) return;
    const [oldest] = open;
    if (oldest === undefined) return;
    open.delete(oldest[0]);
    await (await oldest[1]).close();
  }

  async function fileOf(name: string): Promise<OpenFile> {
    let opened = open.get(name);
    if (opened === undefined) {
      await makeRoom();
      opened = files.open(path.join(dir, name), "read");
      open.set(name, opened);
      opened.catch(() => open.delete(name));
    }
    return await opened;
  }

  return {
    dir,
    placeOf,
    async read({ hash, size }, range = { start: 0, end: size }) {
      const place = await placeOf(hash);
      if (place === undefined) throw missing(dir, hash, "no index names it");
      const { start, end } = range;
      if (place.size !== size || start < 0 || end > size || start > end) {
        throw missing(
          dir,
          hash,
          `it has ${place.size} bytes, and ${start} to ${end} of ${size} are asked for`,
        );
      }
      const file = path.join(dir, place.file);
      let bytes: Buffer;
      try {
        bytes = await readBytes(await fileOf(place.file), {
          start: place.at + start,
          end: place.at + end,
        });
      } catch (error) {
        if (codeOf(error) === "ENOENT") throw missing(dir, hash, `${place.file} does not exist`);
        throw storageError("read", file, error);
      }
      if (bytes.length === end - start) return bytes;
      throw missing(dir, hash, `${place.file} ends before it`);
    },
    async [Symbol.asyncDispose]() {
      const opened = [...open.values()];
      open.clear();
      for (const file of opened) await (await file).close();
    },
  };
}

function missing(dir: string, hash: string, why: string): UsageError {
  return new UsageError(
    `Cannot read the column part ${hash} from ${dir}: ${why}; copy the run's folder again with its ${columnsFolder} folder`,
  );
}

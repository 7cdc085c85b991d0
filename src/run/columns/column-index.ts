import path from "node:path";
import { isCount } from "../../values/is-count.ts";
import { isObject } from "../../values/is-object.ts";
import { codeOf, type Files } from "../disk/files.ts";
import { readPlacedLines } from "../disk/placed-lines.ts";
import { storageError } from "../disk/storage-error.ts";
import { parseJsonText } from "../../json/parse-json.ts";

/** The folder of a run's columns, in the run's folder. */
export const columnsFolder = "columns";

/** The ending of the empty file that takes the place of a file whose bytes are not needed any more. */
const freedEnding = ".freed";

/** The position of a part's bytes. JSON-able: a line of an index. */
export interface ColumnPlace {
  readonly hash: string;
  /** The name of a file in the columns' folder. */
  readonly file: string;
  /** Index of the first byte. */
  readonly at: number;
  /** Number of bytes. */
  readonly size: number;
}

/**
 * The positions of all parts of a run. Each process that writes columns has its own index file, which grows by lines.
 * `refresh()` reads the lines that are new. Lines that name a removed file are skipped.
 */
export class ColumnIndex {
  readonly #dir: string;
  readonly #files: Files;
  readonly #onPlace: (place: ColumnPlace) => void;
  readonly #places = new Map<string, ColumnPlace>();
  /** The hashes of parts whose file was freed. */
  readonly #freed = new Set<string>();
  /** Number of read bytes of each index file. */
  readonly #readBytes = new Map<string, number>();
  #refreshing: Promise<void> | undefined;

  /**
   * @param dir - The columns' folder. It may not exist.
   * @param onPlace - Called for each line that names an existing file.
   */
  constructor(dir: string, files: Files, onPlace: (place: ColumnPlace) => void = () => {}) {
    this.#dir = dir;
    this.#files = files;
    this.#onPlace = onPlace;
  }

  /** Returns the position of the part with this hash, if its line was read. */
  find(hash: string): ColumnPlace | undefined {
    return this.#places.get(hash);
  }

  /** Returns all positions that were read. */
  places(): Iterable<ColumnPlace> {
    return this.#places.values();
  }

  /** Returns true if the only files with this part were freed. */
  isFreed(hash: string): boolean {
    return this.#freed.has(hash) && !this.#places.has(hash);
  }

  /**
   * Reads all lines of the index again. Call it after a file was removed: another file may have the same parts, which
   * are then found there.
   *
   * @throws UsageError if the disk fails.
   */
  async rebuild(): Promise<void> {
    await this.#refreshing;
    this.#places.clear();
    this.#readBytes.clear();
    await this.refresh();
  }

  /**
   * Reads the new lines of all index files.
   *
   * @throws UsageError if the disk fails.
   */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#read().finally(() => (this.#refreshing = undefined));
    await this.#refreshing;
  }

  async #read(): Promise<void> {
    const found: ColumnPlace[] = [];
    const ends = new Map<string, number>();
    for (const name of await listIndexes(this.#dir, this.#files)) {
      const file = path.join(this.#dir, name);
      const start = this.#readBytes.get(name) ?? 0;
      try {
        const { size = 0 } = (await this.#files.facts(file)) ?? {};
        if (size <= start) continue;
        for await (const { text, place } of readPlacedLines(this.#files, file, start)) {
          const line = parsePlace(text);
          // A torn last line is read again when it is complete.
          if (line === undefined) continue;
          found.push(line);
          ends.set(name, place.offset + place.length + 1);
        }
      } catch (error) {
        throw storageError("read", file, error);
      }
    }
    if (found.length > 0) await this.#add(found);
    // Last, so that lines that a failed read dropped are read again.
    for (const [name, end] of ends) this.#readBytes.set(name, end);
  }

  /**
   * Adds the positions in files that exist. A file exists before a line names it, so the list of files is read after
   * the lines.
   */
  async #add(found: readonly ColumnPlace[]): Promise<void> {
    const present = new Set(await listNames(this.#dir, this.#files));
    for (const place of found) {
      if (present.has(place.file)) {
        this.#places.set(place.hash, place);
        this.#onPlace(place);
      } else if (present.has(freedName(place.file))) this.#freed.add(place.hash);
    }
  }
}

/** Returns the name of the empty file that takes the place of a freed file. */
function freedName(file: string): string {
  return `${file}${freedEnding}`;
}

/**
 * Removes a file of columns, because no row or recording that names its parts is needed any more. An empty file with the
 * ending `.freed` takes its place, so that readers know that nothing was lost.
 *
 * @throws UsageError if the disk fails.
 */
export async function freeColumnFile(dir: string, name: string, files: Files): Promise<void> {
  const file = path.join(dir, name);
  try {
    const marker = await files.open(freedName(file), "update");
    await marker.close();
    await files.syncFolder(dir);
    await files.remove(file);
  } catch (error) {
    throw storageError("remove", file, error);
  }
}

/** Lists the index files; none if the folder does not exist. */
async function listIndexes(dir: string, files: Files): Promise<readonly string[]> {
  const names = await listNames(dir, files);
  return names.filter((name) => name.endsWith(".jsonl")).toSorted();
}

/** Lists the names in a columns' folder; none if it does not exist. */
export async function listNames(dir: string, files: Files): Promise<readonly string[]> {
  try {
    return await files.list(dir);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw storageError("read", dir, error);
  }
}

/** Reads a line of an index. Returns `undefined` if it is damaged. */
function parsePlace(text: string): ColumnPlace | undefined {
  const value = parseJsonText(text);
  if (!isObject(value)) return undefined;
  const { hash, file, at, size } = value;
  const isSound =
    typeof hash === "string" &&
    typeof file === "string" &&
    path.basename(file) === file &&
    isCount(at) &&
    isCount(size);
  return isSound ? (value as unknown as ColumnPlace) : undefined;
}

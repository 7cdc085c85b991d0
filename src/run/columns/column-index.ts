import path from "node:path";
import { isObject } from "../../values/is-object.ts";
import { codeOf, type Files } from "../disk/files.ts";
import { readPlacedLines } from "../disk/placed-lines.ts";
import { storageError } from "../disk/storage-error.ts";
import { parseJsonText } from "../../json/parse-json.ts";

/** The folder of a run's columns, in the run's folder. */
export const columnsFolder = "columns";

/** The place of a part's bytes. JSON-able: a line of an index. */
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
 * The places of all parts of a run. Each process that writes columns has its own index file, which grows by lines.
 * `refresh()` reads the lines that are new.
 */
export class ColumnIndex {
  readonly #dir: string;
  readonly #files: Files;
  readonly #places = new Map<string, ColumnPlace>();
  /** Number of read bytes of each index file. */
  readonly #readBytes = new Map<string, number>();
  #refreshing: Promise<void> | undefined;

  /** @param dir - The columns' folder. It may not exist. */
  constructor(dir: string, files: Files) {
    this.#dir = dir;
    this.#files = files;
  }

  /** Returns the place of the part with this hash, if it was read. */
  find(hash: string): ColumnPlace | undefined {
    return this.#places.get(hash);
  }

  /** All places that were read. */
  places(): Iterable<ColumnPlace> {
    return this.#places.values();
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
    for (const name of await listIndexes(this.#dir, this.#files)) {
      const file = path.join(this.#dir, name);
      const start = this.#readBytes.get(name) ?? 0;
      try {
        const { size = 0 } = (await this.#files.facts(file)) ?? {};
        if (size <= start) continue;
        for await (const { text, place } of readPlacedLines(this.#files, file, start)) {
          const found = parsePlace(text);
          // A torn last line is read again when it is complete.
          if (found === undefined) continue;
          this.#places.set(found.hash, found);
          this.#readBytes.set(name, place.offset + place.length + 1);
        }
      } catch (error) {
        throw storageError("read", file, error);
      }
    }
  }
}

/** Lists the index files; none if the folder does not exist. */
async function listIndexes(dir: string, files: Files): Promise<readonly string[]> {
  try {
    const names = await files.list(dir);
    return names.filter((name) => name.endsWith(".jsonl")).toSorted();
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
    Number.isSafeInteger(at) &&
    Number.isSafeInteger(size);
  return isSound ? (value as unknown as ColumnPlace) : undefined;
}

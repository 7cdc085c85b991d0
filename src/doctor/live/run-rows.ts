import path from "node:path";
import { LineReader, type LinePlace, readPlacedLines } from "../../run/disk/placed-lines.ts";
import { storedFiles } from "../../run/gzip/stored-files.ts";
import type { Sample } from "../../trajectory/sample.ts";

/** The names of a row in its run. */
type RowName = Pick<Sample, "rolloutId" | "segment">;

/** Finds rows of a run's folder by their names, while the run is being written. Keeps about 150 bytes a row in memory. */
export class RunRows {
  readonly #file: string;
  readonly #places = new Map<string, LinePlace>();
  /** The number of indexed bytes at the start of the file. */
  #end = 0;

  constructor(dir: string) {
    this.#file = path.join(dir, "samples.jsonl");
  }

  /** Reads the latest line of a row. Returns `undefined` if there is none. */
  async find(name: RowName): Promise<Sample | undefined> {
    try {
      return await this.#find(name);
    } catch (error) {
      // The folder may be removed at any time.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async #find(name: RowName): Promise<Sample | undefined> {
    if (!this.#places.has(keyOf(name))) await this.#index();
    const found = await this.#read(name);
    if (found !== undefined || !this.#places.has(keyOf(name))) return found;
    // A resumed run may rewrite its file, which moves the lines.
    this.#places.clear();
    this.#end = 0;
    await this.#index();
    return await this.#read(name);
  }

  async #read(name: RowName): Promise<Sample | undefined> {
    const place = this.#places.get(keyOf(name));
    if (place === undefined) return undefined;
    await using reader = await LineReader.open(storedFiles, this.#file);
    const row = parseRow(await reader.read(place));
    return row !== undefined && keyOf(row) === keyOf(name) ? row : undefined;
  }

  async #index(): Promise<void> {
    for await (const { text, place } of readPlacedLines(storedFiles, this.#file, this.#end)) {
      const row = parseRow(text);
      // The last line may be incomplete. The next call reads it again.
      if (row === undefined) continue;
      this.#places.set(keyOf(row), place);
      this.#end = place.offset + place.length + 1;
    }
  }
}

function keyOf({ rolloutId, segment }: RowName): string {
  return `${segment} ${rolloutId}`;
}

/** Returns `undefined` for a text that is not a row. */
function parseRow(text: string): Sample | undefined {
  try {
    const row = JSON.parse(text) as Partial<Sample> | null;
    const isRow = typeof row?.rolloutId === "string" && Array.isArray(row.tokenIds);
    return isRow ? (row as Sample) : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

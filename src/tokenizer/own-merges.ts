import { createPieceMerger, type PieceMerger } from "./merge-piece.ts";
import { readMergeTable, type MergeTableReading } from "./merge-table.ts";
import type { JsonObject } from "./model-file.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/** Fetches the merges of one tokenizer's file, and ends the thread that reads them. */
export class OwnMerges {
  readonly #file: Pick<TokenizerFile, "path" | "outline">;
  readonly #idOf: (spelling: string) => number | undefined;
  #reading: MergeTableReading | undefined;
  #isClosed = false;

  constructor(
    file: Pick<TokenizerFile, "path" | "outline">,
    idOf: (spelling: string) => number | undefined,
  ) {
    this.#file = file;
    this.#idOf = idOf;
  }

  /** `undefined` where the file has no merges that are of use here. */
  async fetch(): Promise<PieceMerger | undefined> {
    if (this.#isClosed) return undefined;
    const { path, outline } = this.#file;
    this.#reading = readMergeTable(path);
    const table = await this.#reading.table;
    if (table === undefined) return undefined;
    const takesWhole = (outline["model"] as JsonObject)["ignore_merges"] === true;
    return createPieceMerger(table, takesWhole ? this.#idOf : undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reading?.end();
  }
}

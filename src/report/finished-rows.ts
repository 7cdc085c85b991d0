import { hash } from "node:crypto";
import { UsageError } from "../errors.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { readLines } from "../run/disk/read-jsonl.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { Sample } from "../trajectory/sample.ts";

/**
 * Yields the training rows that a run's finished episodes name, each once, in the order of the
 * file. Skips all other rows: their episodes are not written yet, or a crash lost them and they
 * will be played again. Keeps only hashes in memory.
 * @param isWanted - Called with each line before it is parsed, because a row can be large.
 * @throws UsageError if a wanted line is not JSON, or, at the end, if named rows are missing. An
 *   incomplete last line is skipped, because its writer never completed it.
 */
export async function* readFinishedRows(
  file: string,
  episodes: () => AsyncIterable<Pick<EpisodeRow, "sampleHashes">>,
  isWanted: (line: string) => boolean = () => true,
): AsyncGenerator<Sample, void, undefined> {
  // Episodes are read before the rows, because each episode is written after its rows.
  const named = new NamedRows();
  for await (const episode of episodes()) named.add(episode);
  let line = 0;
  let torn: number | undefined;
  for await (const text of readLines(file)) {
    line += 1;
    if (torn !== undefined) {
      throw new UsageError(
        `Cannot read ${file}, line ${torn}: it is not JSON, expected a training row`,
      );
    }
    if (text === "" || !isWanted(text)) continue;
    let row: Sample | undefined;
    try {
      row = named.take(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      torn = line;
    }
    if (row !== undefined) yield row;
  }
  // If the complete file is missing, someone has removed it.
  if (line === 0 || named.leftCount === 0) return;
  // A start that plays failed episodes again may have removed their rows in the meantime.
  const lacking = new NamedRows();
  for await (const episode of episodes()) lacking.add(episode);
  const lackingCount = named.countIn(lacking);
  if (lackingCount > 0) {
    throw new UsageError(
      `Cannot read all of ${file}: ${lackingCount} rows that finished episodes name are not in it as they were ` +
        "written, as if another program had changed it; turnwright verify says which",
    );
  }
}

/** The hashes of the rows that finished episodes name and that were not found yet. */
class NamedRows {
  readonly #hashes = new Set<string>();

  /** The number of named rows that were not found. */
  get leftCount(): number {
    return this.#hashes.size;
  }

  /** Returns the number of missing rows that the other episodes name too. */
  countIn(others: NamedRows): number {
    return [...this.#hashes].filter((named) => others.#hashes.has(named)).length;
  }

  add({ sampleHashes }: Pick<EpisodeRow, "sampleHashes">): void {
    for (const named of sampleHashes) this.#hashes.add(named);
  }

  /**
   * Returns the row of a line, or `undefined` if no episode names it.
   * @throws SyntaxError if the line is not JSON.
   */
  take(line: string): Sample | undefined {
    const row = JSON.parse(line) as Sample | null;
    const isNamed =
      this.#hashes.delete(hash("sha256", line, "hex")) ||
      // Another program may have written the same values in another form.
      this.#hashes.delete(hashRow(row));
    return row !== null && isNamed ? row : undefined;
  }
}

import { hash } from "node:crypto";
import { UsageError } from "../errors.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { readLines } from "../run/disk/read-jsonl.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { Sample } from "../trajectory/sample.ts";

/**
 * The training rows of a run's file that its finished episodes name, each once, in the order of the file. What else
 * is there is of an episode that is still to be written, or of which a crash left no more than that: it is played
 * again. Only hashes stay in mind.
 *
 * @param isWanted - Asked of each line before it is parsed, for a row can be large.
 * @throws UsageError where a line that is wanted is no JSON, and, once all is read, where rows that are named are not
 *   there. A last line that is torn is passed over: it was never acknowledged.
 */
export async function* readFinishedRows(
  file: string,
  episodes: () => AsyncIterable<Pick<EpisodeRow, "sampleHashes">>,
  isWanted: (line: string) => boolean = () => true,
): AsyncGenerator<Sample, void, undefined> {
  // Before the rows: those of all episodes that are found are there by then.
  const named = new NamedRows();
  for await (const episode of episodes()) named.add(episode);
  let line = 0;
  let torn: number | undefined;
  for await (const text of readLines(file)) {
    line += 1;
    if (torn !== undefined) {
      throw new UsageError(
        `Cannot read ${file}, line ${torn}: it is no JSON, expected a training row`,
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
  // A file that is not there at all was taken away.
  if (line === 0 || named.leftCount === 0) return;
  // A start that plays failed episodes again may have taken theirs out meanwhile.
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

/** Which rows finished episodes name, until they are found. */
class NamedRows {
  readonly #hashes = new Set<string>();

  /** How many named rows were not found. */
  get leftCount(): number {
    return this.#hashes.size;
  }

  /** How many of those that were not found others name as well. */
  countIn(others: NamedRows): number {
    return [...this.#hashes].filter((named) => others.#hashes.has(named)).length;
  }

  add({ sampleHashes }: Pick<EpisodeRow, "sampleHashes">): void {
    for (const named of sampleHashes) this.#hashes.add(named);
  }

  /**
   * The row of a line; nothing where nobody names it.
   *
   * @throws SyntaxError where it is no JSON.
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

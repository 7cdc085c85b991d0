import { findValueProblem } from "../columns/check-columns.ts";
import type { ColumnPart, ColumnParts } from "../columns/column-part.ts";
import {
  isOfAllTokens,
  namesOf,
  type ColumnName,
  type ColumnSpecs,
} from "../columns/column-specs.ts";
import type { ColumnFolder } from "../run/columns/column-folder.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { RawRow, Violation } from "../trajectory/violation.ts";
import { readSoundPart } from "./read-sound-part.ts";

/** The facts of a run that its columns are checked against. */
interface ColumnFacts {
  readonly columns?: ColumnSpecs;
  readonly vocabularySize?: number;
}

type FreeableSource = Pick<ColumnFolder, "read" | "isFreed">;

/**
 * Reads the parts that rows name, and checks their bytes: the hash, and each value. Rows that share a part of routes
 * read it once. Parts that a service freed, because their rows were acknowledged, are not missing.
 */
export class ColumnBytes {
  readonly #source: FreeableSource;
  readonly #facts: ColumnFacts;
  /** The faults of parts that only depend on their bytes. */
  readonly #checked = new Map<string, string | undefined>();

  constructor(source: FreeableSource, facts: ColumnFacts) {
    this.#source = source;
    this.#facts = facts;
  }

  /**
   * Returns the first fault of each column of a row.
   *
   * @param row - A row without violations.
   */
  async check(row: RawRow): Promise<readonly Violation[]> {
    const { columns = {} } = row as { readonly columns?: ColumnParts };
    const { columns: specs } = this.#facts;
    if (specs === undefined) return [];
    const found: Violation[] = [];
    for (const name of namesOf(specs)) {
      for (const part of columns[name] ?? []) {
        const fault = await this.#findFault(name, part, row as unknown as Sample);
        if (fault === undefined) continue;
        found.push({ rule: "column-bytes", detail: `${name}, part ${part.hash}: ${fault}` });
        break;
      }
    }
    return found;
  }

  async #findFault(name: ColumnName, part: ColumnPart, row: Sample): Promise<string | undefined> {
    if (!isOfAllTokens(name)) return await this.#read(name, part, row);
    // The checks of such a part do not depend on the row.
    const key = `${part.hash}:${part.rows}`;
    if (!this.#checked.has(key)) this.#checked.set(key, await this.#read(name, part, row));
    return this.#checked.get(key);
  }

  async #read(name: ColumnName, part: ColumnPart, row: Sample): Promise<string | undefined> {
    if (await this.#source.isFreed(part.hash)) return undefined;
    const read = await readSoundPart(this.#source, part);
    if ("fault" in read) return read.fault;
    const { bytes } = read;
    const { from, rows } = part;
    const { columns = {}, vocabularySize } = this.#facts;
    const wanted = {
      specs: columns,
      knownRows: 0,
      promptLength: from,
      sampledIds: sampledIds(part, row),
      vocabularySize,
    };
    const problem = await findValueProblem(name, { rows, bytes, start: 0 }, wanted);
    return problem && `${problem.problem}, expected ${problem.expected}`;
  }
}

/** Returns the ids of a part's tokens as they were sampled: with a stop id that left the row. */
function sampledIds({ from, rows }: ColumnPart, { tokenIds, turns }: Sample): readonly number[] {
  const ids = tokenIds.slice(from, from + rows);
  const dropped = turns.find(({ end }) => end >= from && end < from + rows);
  if (dropped?.droppedStopId !== undefined) ids[dropped.end - from] = dropped.droppedStopId;
  return ids;
}

import { namesOf, type ColumnName } from "../../columns/column-specs.ts";
import type { ExportRecord } from "../export-record.ts";
import type { ExportSurroundings, ReadyAttempt } from "../exporter.ts";
import type { ColumnExport } from "./column-rules.ts";
import { hasMixedVersions, RowColumns, type ColumnPlaces } from "./row-columns.ts";

/** The counts of an export's side columns. JSON-able. */
export interface ColumnSummary {
  /** Number of rows with side columns. */
  readonly rowCount: number;
  /** Number of bytes of the binary file. Absent if the records contain the columns. */
  readonly byteCount?: number;
  /** Number of rows whose columns were computed by several policy versions. */
  readonly mixedRowCount: number;
  /** The columns of the run that the export does not contain. */
  readonly leftOut: readonly ColumnName[];
}

/** Adds side columns to the records of attempts, and counts rows. */
export class ColumnAdder implements AsyncDisposable {
  rowCount = 0;
  mixedRowCount = 0;
  readonly #add: NonNullable<ColumnExport["add"]>;
  readonly #places: ColumnPlaces;
  readonly #close: () => Promise<void>;

  /** @param close - Closes the files that the columns are read from. */
  constructor(
    add: NonNullable<ColumnExport["add"]>,
    places: ColumnPlaces,
    close: () => Promise<void>,
  ) {
    this.#add = add;
    this.#places = places;
    this.#close = close;
  }

  /** Closes the files of the columns. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  /** The columns of the run, for the exporters' checks of each row. */
  get surroundings(): Pick<ExportSurroundings, "columns"> {
    return { columns: this.#places.specs };
  }

  /**
   * Yields the records with the columns of their rows, one at a time. A record has one row, or all rows of the attempt.
   *
   * @throws UsageError if a row lacks a column of its run.
   */
  async *add(
    records: readonly ExportRecord[],
    { rows }: Pick<ReadyAttempt, "rows">,
  ): AsyncGenerator<ExportRecord> {
    const names = namesOf(this.#places.specs);
    this.rowCount += rows.length;
    this.mixedRowCount += rows.filter((row) =>
      names.some((name) => hasMixedVersions(row, name)),
    ).length;
    for (const [index, record] of records.entries()) {
      const own = records.length === rows.length ? [rows[index]!] : rows;
      yield await this.#add(
        record,
        own.map((row) => new RowColumns(row, this.#places)),
      );
    }
  }
}

import type { ColumnParts } from "../../columns/column-part.ts";
import { isOfAllTokens, type ColumnName } from "../../columns/column-specs.ts";
import type { OpenColumns } from "../../run/columns/open-columns.ts";
import { partAt, type ColumnCheck, type TokenColumn } from "../model/side-columns.ts";
import { checkPartHashes } from "./check-part-hashes.ts";
import { readPartsOfLine } from "./read-parts.ts";
import { readIdRow, readLayerRow } from "./read-token-column.ts";
import type { RowSource } from "./row-source.ts";
import type { RunIndex } from "./run-index.ts";

/** The address of a side column of a training row. */
interface ColumnAddress {
  readonly rolloutId: string;
  /** Index of the row among those of the rollout. */
  readonly row: number;
  readonly name: ColumnName;
}

/** Reads side columns of runs. Keeps no bytes in memory. A token's values are read when they are requested. */
export class SideColumnSource {
  readonly #rows: Pick<RowSource, "spell">;
  readonly #columns: OpenColumns;
  /** The parts of the row that was read last, because each of its tokens requests them. */
  #last: { readonly key: string; readonly parts: Promise<ColumnParts | undefined> } | undefined;

  constructor(rows: Pick<RowSource, "spell">, columns: OpenColumns) {
    this.#rows = rows;
    this.#columns = columns;
  }

  /**
   * Reads a column's values for one token. Returns `undefined` if the column has no row for the token.
   * @throws UsageError if the bytes are not there, or are not those of rows.
   */
  async token(
    run: RunIndex,
    { name, ...place }: ColumnAddress,
    token: number,
  ): Promise<TokenColumn | undefined> {
    const { columns: specs = {} } = run.facts;
    const part = partAt((await this.#partsOf(run, place))?.[name], token);
    if (part === undefined || specs[name] === undefined) return undefined;
    const { policyVersion } = part;
    const row = token - part.from;
    const folder = this.#columns.of(run.root, run);
    if (isOfAllTokens(name)) {
      const found = await readLayerRow(folder, part, { name, specs, row });
      return { kind: "layers", ...found, policyVersion };
    }
    const found = await readIdRow(folder, part, { hasLogprobs: name === "topLogprobs", row });
    const pieces = await this.#rows.spell(run, found.ids);
    return { kind: "tokens", ...found, ...(pieces && { pieces }), policyVersion };
  }

  /** Compares the bytes of a column with their hashes. Returns `undefined` if the row does not have the column. */
  async check(run: RunIndex, { name, ...place }: ColumnAddress): Promise<ColumnCheck | undefined> {
    const parts = (await this.#partsOf(run, place))?.[name];
    return parts && (await checkPartHashes(this.#columns.of(run.root, run), parts));
  }

  async #partsOf(
    run: RunIndex,
    { rolloutId, row }: Omit<ColumnAddress, "name">,
  ): Promise<ColumnParts | undefined> {
    const key = JSON.stringify([
      run.key,
      run.facts.generation,
      rolloutId,
      row,
      run.rowSizes(rolloutId),
    ]);
    if (this.#last?.key !== key) {
      const parts = run.rowLine(rolloutId, row).then((line) => line && readPartsOfLine(line));
      this.#last = { key, parts };
    }
    return await this.#last.parts;
  }
}

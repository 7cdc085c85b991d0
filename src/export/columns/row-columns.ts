import { createHash, type Hash } from "node:crypto";
import { columnHashDigits, partsIn } from "../../columns/column-part.ts";
import {
  expertBytes,
  rowBytesOf,
  type ColumnName,
  type ColumnSpecs,
} from "../../columns/column-specs.ts";
import { decodeRagged, type ColumnPart, type ColumnSource } from "../../columns/index.ts";
import { assertInvariant, UsageError } from "../../errors.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { elementBytes, widenIds, type IdType } from "./array-type.ts";
import type { ColumnArray, ColumnSink, PlacedArray } from "./column-sink.ts";

/** The greatest number of bytes of a part that are read from the disk in one step. */
const blockSize = 256 * 1024;

/**
 * The values of an array's rows that the engine did not compute: zeros (`zero`), ones in all bits, which is -1
 * (`missing`), or a copy of the previous row (`copy`).
 */
export type Padding = "zero" | "missing" | "copy";

/** A training row whose columns are exported. Its ids may be fewer than those of `sample`. */
interface ColumnRow extends Pick<Sample, "tokenIds" | "promptLength" | "lossMask"> {
  readonly sample: Sample;
}

/** The rows of a ragged column by token. */
export interface TokenSets {
  /** Returns the ids of a token. Empty if the token was not trained. */
  readonly idsOf: (token: number) => Int32Array;
  /** Returns the logprobs of a token's ids. */
  readonly logprobsOf: (token: number) => Float32Array;
}

/** The origin and the destination of an export's side columns. */
export interface ColumnPlaces {
  readonly specs: ColumnSpecs;
  readonly source: ColumnSource;
  /** Takes the arrays of forms with a binary file. */
  readonly sink?: ColumnSink;
}

/** The side columns of one row. Reads them in blocks, and holds at most one ragged column in memory. */
export class RowColumns {
  readonly row: ColumnRow;
  readonly specs: ColumnSpecs;
  readonly #places: ColumnPlaces;

  constructor(row: ColumnRow, places: ColumnPlaces) {
    this.row = row;
    this.specs = places.specs;
    this.#places = places;
  }

  /** Number of the row's ids. */
  get tokenCount(): number {
    return this.row.tokenIds.length;
  }

  /** Writes an array into the export's binary file. Returns its place there. */
  async place(array: ColumnArray): Promise<PlacedArray> {
    const { sink } = this.#places;
    assertInvariant(sink !== undefined, "a form with a binary file has a sink");
    return await sink.place(array);
  }

  /**
   * Returns the row's array of `routedExperts` or `indexerTopK`: [`rows`, layers, entries of a token].
   *
   * @param rows - Number of rows, from token 0 on. Rows that the engine did not compute are padding.
   * @throws UsageError if the parts do not have the rows of all ids but the last. Reading the bytes throws the same
   *   error if they do not have the hash of their part.
   */
  tokenArray(
    name: "routedExperts" | "indexerTopK",
    { type, rows, padding }: { readonly type: IdType; rows: number; padding?: Padding },
  ): ColumnArray {
    const { layerCount, perToken } = this.specs[name]!;
    const parts = this.#tokenParts(name);
    const known = Math.min(rows, this.tokenCount - 1);
    return {
      type,
      shape: [rows, layerCount, perToken],
      bytes: () => this.#tokenBytes(name, parts, { type, known, rows, padding }),
    };
  }

  async *#tokenBytes(
    name: "routedExperts" | "indexerTopK",
    parts: readonly ColumnPart[],
    about: { type: IdType; known: number; rows: number; padding: Padding | undefined },
  ): AsyncGenerator<Uint8Array> {
    const { type, known, rows, padding = "zero" } = about;
    const rowSize = rowBytesOf(name, this.specs)!;
    const from = name === "routedExperts" ? expertBytes(this.specs.routedExperts!) : 4;
    const perBlock = Math.max(1, Math.floor(blockSize / rowSize));
    const paddedSize = (rowSize / from) * elementBytes(type);
    let last: Uint8Array = new Uint8Array(paddedSize);
    for (const part of parts) {
      const end = Math.min(part.rows, known - part.from);
      // A row that was cut has no ids of the later parts.
      if (end <= 0) break;
      const hash = createHash("sha256");
      for (let row = 0; row < part.rows; row += perBlock) {
        const until = Math.min(part.rows, row + perBlock);
        const bytes = await this.#places.source.read(part, {
          start: row * rowSize,
          end: until * rowSize,
        });
        // Rows beyond the end decide the hash, too.
        hash.update(bytes);
        if (row >= end) continue;
        const wanted = bytes.subarray(0, (Math.min(end, until) - row) * rowSize);
        const block = widenIds(wanted, from, type);
        last = block.subarray(block.length - paddedSize);
        yield block;
      }
      this.#requireHash(name, part, hash);
    }
    const fill = { zero: 0, missing: 0xff }[padding as "zero" | "missing"];
    for (let row = known; row < rows; row++) {
      yield padding === "copy" ? last : new Uint8Array(paddedSize).fill(fill);
    }
  }

  /** Returns the parts of a column with a row for each computed token, after a check. */
  #tokenParts(name: "routedExperts" | "indexerTopK"): readonly ColumnPart[] {
    const parts = this.#partsOf(name);
    const rowSize = rowBytesOf(name, this.specs)!;
    let known = 0;
    for (const { from, rows, size } of parts) {
      if (from !== known)
        throw this.#wrong(name, `a part begins at token ${from}, not at ${known}`);
      if (size !== rows * rowSize) {
        throw this.#wrong(name, `a part of ${rows} rows has ${size} bytes, not ${rows * rowSize}`);
      }
      known += rows;
    }
    if (known >= this.tokenCount - 1) return parts;
    throw this.#wrong(name, `it has ${known} rows for ${this.tokenCount} ids`);
  }

  /**
   * Reads the row's `keptTokens` or `topLogprobs`.
   *
   * @throws UsageError if a trained token has no entry, or the bytes do not have the hash of their part.
   */
  async tokenSets(name: "keptTokens" | "topLogprobs"): Promise<TokenSets> {
    const { lossMask } = this.row;
    const hasLogprobs = name === "topLogprobs";
    const ids = new Map<number, Int32Array>();
    const logprobs = new Map<number, Float32Array>();
    for (const part of this.#partsOf(name)) {
      const bytes = await this.#places.source.read(part);
      this.#requireHash(name, part, createHash("sha256").update(bytes));
      const rows = this.#decode(name, part, bytes);
      let at = 0;
      for (const [index, count] of rows.counts.entries()) {
        const token = part.from + index;
        const isTrained = lossMask[token] === 1;
        if (isTrained) ids.set(token, rows.ids.subarray(at, at + count));
        if (isTrained && hasLogprobs) logprobs.set(token, rows.logprobs!.subarray(at, at + count));
        at += count;
      }
    }
    for (const [token, bit] of lossMask.entries()) {
      if (bit === 0 || (ids.get(token)?.length ?? 0) > 0) continue;
      throw this.#wrong(name, `the trained token ${token} has no entry`);
    }
    const [noIds, noLogprobs] = [new Int32Array(), new Float32Array()];
    return {
      idsOf: (token) => ids.get(token) ?? noIds,
      logprobsOf: (token) => logprobs.get(token) ?? noLogprobs,
    };
  }

  #decode(name: "keptTokens" | "topLogprobs", part: ColumnPart, bytes: Uint8Array) {
    try {
      return decodeRagged(bytes, { rows: part.rows, hasLogprobs: name === "topLogprobs" });
    } catch (error) {
      if (error instanceof RangeError) throw this.#wrong(name, error.message);
      throw error;
    }
  }

  /**
   * Compares the bytes of a part with their recorded hash.
   *
   * @throws UsageError if the bytes that were read are not those that the engine returned.
   */
  #requireHash(name: ColumnName, { hash }: ColumnPart, found: Hash): void {
    if (found.digest("hex").slice(0, columnHashDigits) === hash) return;
    throw this.#wrong(name, `the bytes of the part ${hash} were changed`);
  }

  /**
   * Returns the parts of a column in this row.
   *
   * @throws UsageError if the row lacks a column of its run.
   */
  #partsOf(name: ColumnName): readonly ColumnPart[] {
    const parts = partsIn(this.row.sample, name);
    if (parts !== undefined) return parts;
    throw this.#wrong(name, "the row has no parts of it, and its run has the column");
  }

  #wrong(name: ColumnName, why: string): UsageError {
    const { rolloutId, segment } = this.row.sample;
    return new UsageError(
      `Cannot export ${name} of ${rolloutId}, row ${segment}: ${why}; turnwright verify checks the run's folder`,
    );
  }
}

/** True if the rows of a column were computed by several policy versions. */
export function hasMixedVersions({ sample }: ColumnRow, name: ColumnName): boolean {
  const parts = partsIn(sample, name) ?? [];
  return parts.some(({ policyVersion }) => policyVersion !== parts[0]!.policyVersion);
}

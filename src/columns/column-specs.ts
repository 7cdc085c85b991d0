import { UsageError } from "../errors.ts";
import { isObject } from "../values/is-object.ts";

/**
 * The side columns of a run: typed tables with rows beside a training row's tokens. JSON-able, and part of a run's
 * identity.
 */
export interface ColumnSpecs {
  /**
   * The experts that each token was routed to while the engine computed it. Row i belongs to token i of the row. The
   * last sampled token of a row was not computed and has no row.
   */
  readonly routedExperts?: ExpertShape;
  /** The ids that top-k and top-p kept when a sampled token was drawn. The row's logprobs are those over this set. */
  readonly keptTokens?: KeptTokensSpec;
  /** The most probable tokens at each sampled token, with their logprobs. */
  readonly topLogprobs?: TopSpec;
  /** The positions that a sparse-attention indexer selected for each token. Rows as in `routedExperts`. */
  readonly indexerTopK?: IndexerShape;
}

/** The shape of a row of `routedExperts`: `layerCount` x `perToken` ids below `expertCount`. */
export interface ExpertShape {
  /** All layers. Dense ones have zeros. */
  readonly layerCount: number;
  /** Number of experts that a token is routed to in a layer. */
  readonly perToken: number;
  /** Number of experts in a layer. Up to 256, ids are bytes; above, 16-bit integers. */
  readonly expertCount: number;
}

/** Settings of `keptTokens`. */
export interface KeptTokensSpec {
  /** The most ids of a token's set, at least 2. Requests set `topK` to at most this. */
  readonly maxCount: number;
}

/** Settings of `topLogprobs`. */
export interface TopSpec {
  /** Number of tokens, 1 to 100. */
  readonly count: number;
}

/** The shape of a row of `indexerTopK`: `layerCount` x `perToken` 32-bit positions. */
export interface IndexerShape {
  readonly layerCount: number;
  readonly perToken: number;
}

/** The name of a column that an engine returns. */
export type ColumnName = keyof ColumnSpecs;

/** The names of all columns that an engine returns. */
export const columnNames = [
  "routedExperts",
  "keptTokens",
  "topLogprobs",
  "indexerTopK",
] as const satisfies readonly ColumnName[];

/** True if a text is the name of a column that an engine returns. */
export function isColumnName(name: string): name is ColumnName {
  return (columnNames as readonly string[]).includes(name);
}

/** Returns the names of the columns that the specs contain. */
export function namesOf(specs: ColumnSpecs): readonly ColumnName[] {
  return columnNames.filter((name) => specs[name] !== undefined);
}

/** Returns the specs that a run recorded in `found` of its `run.json`. Empty if it has no side columns. */
export function specsIn(found: unknown): ColumnSpecs {
  const { columns } = isObject(found) ? found : {};
  return isObject(columns) ? columns : {};
}

/** True if a column has one row for each computed token. The others have one row for each sampled token. */
export function isOfAllTokens(name: ColumnName): name is "routedExperts" | "indexerTopK" {
  return name === "routedExperts" || name === "indexerTopK";
}

/** Returns the bytes of an expert's id: 1 up to 256 experts, else 2. */
export function expertBytes({ expertCount }: ExpertShape): 1 | 2 {
  return expertCount <= 256 ? 1 : 2;
}

/** Returns the bytes of a row. `undefined` if rows differ in length. */
export function rowBytesOf(name: ColumnName, specs: ColumnSpecs): number | undefined {
  if (name === "routedExperts" && specs.routedExperts !== undefined) {
    const { layerCount, perToken } = specs.routedExperts;
    return layerCount * perToken * expertBytes(specs.routedExperts);
  }
  if (name === "indexerTopK" && specs.indexerTopK !== undefined) {
    return specs.indexerTopK.layerCount * specs.indexerTopK.perToken * 4;
  }
  return undefined;
}

/**
 * Checks specs from outside.
 *
 * @param place - Names the setting in messages.
 * @throws UsageError for a number that is out of range, or sizes that no server returns.
 */
export function checkSpecs(specs: ColumnSpecs, place: string): void {
  const { routedExperts, keptTokens, topLogprobs, indexerTopK } = specs;
  const requireCount = (name: string, value: number, min: number, max: number): void => {
    if (Number.isSafeInteger(value) && value >= min && value <= max) return;
    throw new UsageError(
      `${place} cannot have ${name} ${value}, expected a whole number from ${min} to ${max}`,
    );
  };
  if (routedExperts !== undefined) {
    const { layerCount, perToken, expertCount } = routedExperts;
    requireCount("routedExperts with a layer count of", layerCount, 1, 1024);
    requireCount("routedExperts with an expert count of", expertCount, 2, 65_536);
    requireCount("routedExperts with experts a token of", perToken, 1, expertCount);
  }
  if (keptTokens !== undefined) requireCount("keptTokens of", keptTokens.maxCount, 2, 1_000_000);
  if (topLogprobs !== undefined) requireCount("topLogprobs of", topLogprobs.count, 1, 100);
  if (indexerTopK === undefined) return;
  requireCount("indexerTopK with a layer count of", indexerTopK.layerCount, 1, 1024);
  requireCount("indexerTopK with positions a token of", indexerTopK.perToken, 1, 65_536);
}

import type { ColumnPart } from "../../columns/column-part.ts";
import { specsIn, type ExpertShape } from "../../columns/column-specs.ts";
import { describeError, UsageError } from "../../errors.ts";
import { openStoredRun } from "../../report/read-run.ts";
import type { ColumnFolder } from "../../run/columns/column-folder.ts";
import type { OpenColumns } from "../../run/columns/open-columns.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { RowPair } from "../analysis/row-pair.ts";
import { examineRow } from "../analysis/row-evidence.ts";
import { createKindReader, readPlainKinds, type KindReader } from "../analysis/token-kinds.ts";
import { nameOf } from "../input/trainer-rows.ts";
import type { TrainerRow } from "../input/trainer-row.ts";
import { pairRoutes } from "../pair-routes.ts";
import { factsIn, modelIn, parsersIn } from "../run-facts.ts";
import type { RunFacts } from "../verdict/evidence.ts";
import type { ComparedRow, RouteState } from "./row-window.ts";
import { RunRows } from "./run-rows.ts";

/** The parts of a run that the comparison of single rows needs. */
export interface ComparedRun {
  readonly rows: RunRows;
  readonly dir: string;
  readonly facts: RunFacts;
  readonly kinds: KindReader;
  readonly shape: ExpertShape | undefined;
}

/**
 * Loads each tokenizer once. For a tokenizer that cannot be loaded, the result is `undefined`, and the kinds of tokens
 * follow from their position alone.
 */
export class CodecStore {
  readonly #codecs = new Map<string, Promise<TokenCodec | undefined>>();

  async load(model: string): Promise<TokenCodec | undefined> {
    const loading = this.#codecs.get(model) ?? load(model);
    this.#codecs.set(model, loading);
    return await loading;
  }
}

async function load(model: string): Promise<TokenCodec | undefined> {
  try {
    return await loadTokenCodec(model);
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

/**
 * Opens a run's folder for the comparison of single rows.
 *
 * @throws UsageError if the folder is not a run's.
 */
export async function openComparedRun(dir: string, codecs: CodecStore): Promise<ComparedRun> {
  const { manifest } = await openStoredRun(dir, { onDamaged: () => {} });
  const model = modelIn(manifest);
  const codec = model === undefined ? undefined : await codecs.load(model);
  return {
    dir,
    rows: new RunRows(dir),
    facts: factsIn(manifest),
    kinds: codec === undefined ? readPlainKinds : createKindReader(codec, parsersIn(manifest)),
    shape: specsIn(manifest.found).routedExperts,
  };
}

/** A training row, and the trainer's logprobs of the row. */
interface RowToCompare {
  /** The name of the row, unique among all runs. */
  readonly key: string;
  readonly row: Sample;
  readonly trainer: TrainerRow;
  readonly columns: OpenColumns;
}

/**
 * Compares a row with the trainer's logprobs of it.
 *
 * @throws UsageError if the trainer's row does not fit.
 */
export async function compareRow(
  { facts, kinds, shape, dir }: ComparedRun,
  { key, row, trainer, columns }: RowToCompare,
): Promise<ComparedRow> {
  requireFit(row, trainer);
  const source = columns.of(dir);
  const { state, ...routes } = await routesOf(row, trainer, { shape, source });
  const evidence = await examineRow({ row, trainer, kinds: await kinds(row), ...routes });
  return { key, evidence, facts, routes: state };
}

function requireFit(row: Sample, trainer: TrainerRow): void {
  const { length } = trainer.logprobs;
  if (length !== row.tokenIds.length) {
    throw new UsageError(
      `${nameOf(row)} has ${row.tokenIds.length} tokens, and "logprobs" has ${length} entries, expected one for each`,
    );
  }
  const place = trainer.logprobs.findIndex(
    (value) => !Number.isFinite(value) && !Number.isNaN(value),
  );
  if (place >= 0) {
    throw new UsageError(
      `"logprobs[${place}]" of ${nameOf(row)} is infinite or not a number, expected a number, or null without one`,
    );
  }
}

async function routesOf(
  row: Sample,
  { routedExperts }: TrainerRow,
  { shape, source }: { readonly shape: ExpertShape | undefined; readonly source: ColumnFolder },
): Promise<Pick<RowPair, "routes"> & { readonly state: RouteState }> {
  const parts = row.columns?.routedExperts;
  if (shape === undefined || parts === undefined) return { state: { type: "none" } };
  // The routes of each token before the last trained one decide a logprob.
  const neededCount = Math.max(0, row.lossMask.lastIndexOf(1));
  if (routedExperts === undefined) return { state: { type: "engine-only", neededCount } };
  if (await areFreed(parts, source)) return { state: { type: "freed" } };
  try {
    const routes = await pairRoutes(parts, routedExperts, { shape, source });
    const missingCount = Math.max(0, neededCount - routes.trainer.rows);
    return { routes, state: { type: "both", missingCount } };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // They may be freed while they are read.
    if (await areFreed(parts, source)) return { state: { type: "freed" } };
    const message = `"routedExperts" of ${nameOf(row)} cannot be used: ${describeError(error)}`;
    throw new UsageError(message, { cause: error });
  }
}

async function areFreed(parts: readonly ColumnPart[], source: ColumnFolder): Promise<boolean> {
  for (const { hash } of parts) if (await source.isFreed(hash)) return true;
  return false;
}

import { UsageError } from "../../errors.ts";
import { parseJson, type EpisodeRow } from "../../run/folder/episode-row.ts";
import { readTokenizerFile } from "../../tokenizer/tokenizer-file.ts";
import { createVocabulary, type Vocabulary } from "../../tokenizer/byte-pair/vocabulary.ts";
import type { RowColumns, TokenPiece } from "../model/row-columns.ts";
import { findBranches, markContext, type BranchRow, type RowBranch } from "../model/row-tree.ts";
import { readBranchRow, readRow, spellRow, type RowReading } from "./read-row.ts";
import { modelFolderOf, type RunIndex } from "./run-index.ts";
import { spellIds } from "./spell-ids.ts";

/** The largest number of rows of one rollout that are compared with each other. */
const maxBranches = 200;

/**
 * The largest total size of the lines, in bytes. An id of four digits takes four bytes in memory.
 */
const maxBranchBytes = 160_000_000;

/** Reads training rows with the vocabulary that their run was played with, each loaded once. */
export class RowSource {
  readonly #model: string | undefined;
  readonly #vocabularies = new Map<string, Promise<Vocabulary>>();
  /** The rows of the rollout that was read last, because each of its pages requests them. */
  #branchRows: { readonly key: string; readonly rows: Promise<readonly BranchRow[]> } | undefined;

  /** Creates a source. `model` replaces the model folder of every run. */
  constructor(model?: string) {
    this.#model = model;
  }

  /**
   * Reads one training row of a rollout. Marks the part that it shares with the others, and that
   * they train, as context. Returns `undefined` if there is no such row.
   * @throws UsageError if its line is not a training row.
   */
  async read(run: RunIndex, rolloutId: string, row: number): Promise<RowColumns | undefined> {
    const line = await run.rowLine(rolloutId, row);
    if (line === undefined) return row === 0 ? await this.#readLive(run, rolloutId) : undefined;
    const reading = { ...stopIdsOf(run), ...(await this.#vocabularyOf(run)) };
    const columns = readRow(line, reading);
    if (run.rowSizes(rolloutId).length > 1) {
      const rows = await this.#branchRowsOf(run, rolloutId);
      markContext(
        columns,
        rows.filter((_, place) => place !== row),
      );
    }
    return columns;
  }

  /**
   * Returns the rows of a rollout with several rows as a tree. Leaves out rows after the first few
   * hundred.
   * @throws UsageError if a line is not a training row.
   */
  async branches(run: RunIndex, rolloutId: string): Promise<readonly RowBranch[]> {
    // One row is the trunk and all; reading it a second time would cost as much as the first.
    if (run.rowSizes(rolloutId).length < 2) return [];
    const line = await run.episodeLine(rolloutId);
    const { tree, lineage } = (line === undefined ? {} : parseJson(line)) as Partial<EpisodeRow>;
    return findBranches(await this.#branchRowsOf(run, rolloutId), {
      ...(tree !== undefined && { tree }),
      ...(lineage !== undefined && { lineage }),
    });
  }

  /** Returns the texts of ids. `undefined` if the run's tokenizer is not available. */
  async spell(run: RunIndex, ids: readonly number[]): Promise<readonly TokenPiece[] | undefined> {
    const { vocabulary } = await this.#vocabularyOf(run);
    return vocabulary && spellIds(vocabulary, ids);
  }

  async #readLive(run: RunIndex, rolloutId: string): Promise<RowColumns | undefined> {
    if (!run.running.some((live) => live.rolloutId === rolloutId)) return undefined;
    const columns = await run.recordings.columns(rolloutId);
    if (columns === undefined) return undefined;
    return {
      ...columns,
      header: { ...columns.header, ...spellRow(columns.ids, await this.#vocabularyOf(run)) },
    };
  }

  async #branchRowsOf(run: RunIndex, rolloutId: string): Promise<readonly BranchRow[]> {
    const key = JSON.stringify([run.key, run.facts.generation, rolloutId, run.rowSizes(rolloutId)]);
    if (this.#branchRows?.key !== key) {
      this.#branchRows = { key, rows: readBranchRows(run, rolloutId) };
    }
    return await this.#branchRows.rows;
  }

  /** Loads a run's vocabulary before a request needs it. */
  async warm(run: RunIndex): Promise<void> {
    await this.#vocabularyOf(run);
  }

  async #vocabularyOf(run: RunIndex): Promise<Pick<RowReading, "vocabulary" | "vocabularyNote">> {
    const folder = this.#model ?? modelFolderOf(run);
    if (folder === undefined) {
      return {
        vocabularyNote: "the run does not say which tokenizer it used: name one with --model",
      };
    }
    const loading = this.#vocabularies.get(folder) ?? loadVocabulary(folder);
    this.#vocabularies.set(folder, loading);
    try {
      return { vocabulary: await loading };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return {
        vocabularyNote: `the tokenizer in ${folder} is not here: name its folder with --model`,
      };
    }
  }
}

async function readBranchRows(run: RunIndex, rolloutId: string): Promise<readonly BranchRow[]> {
  const rows: BranchRow[] = [];
  let byteCount = 0;
  for (const [row, size] of run.rowSizes(rolloutId).slice(0, maxBranches).entries()) {
    byteCount += size;
    if (byteCount > maxBranchBytes) break;
    rows.push(readBranchRow((await run.rowLine(rolloutId, row))!));
  }
  return rows;
}

/**
 * Reads the vocabulary of a folder's tokenizer.
 *
 * @throws UsageError if there is none, or if it is broken.
 */
async function loadVocabulary(folder: string): Promise<Vocabulary> {
  const vocabulary = createVocabulary(await readTokenizerFile(folder));
  // Reads it whole.
  vocabulary.tokenOf(0);
  return vocabulary;
}

/** Returns the ids that end a turn, if the run's template was measured. */
function stopIdsOf({ manifest }: RunIndex): Pick<RowReading, "stopIds"> {
  const { template } = manifest.found as { readonly template?: { readonly stopIds?: unknown } };
  const ids = template?.stopIds;
  return Array.isArray(ids) ? { stopIds: new Set(ids as readonly number[]) } : {};
}

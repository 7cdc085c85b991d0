import { UsageError } from "../../errors.ts";
import { readTokenizerFile } from "../../tokenizer/tokenizer-file.ts";
import { createVocabulary, type Vocabulary } from "../../tokenizer/vocabulary.ts";
import type { RowColumns } from "../model/row-columns.ts";
import { readRow, type RowReading } from "./read-row.ts";
import { modelFolderOf, type RunIndex } from "./run-index.ts";

/** Reads training rows with the vocabulary that their run was played with, each loaded once. */
export class RowSource {
  readonly #model: string | undefined;
  readonly #vocabularies = new Map<string, Promise<Vocabulary>>();

  /** `model` takes the place of every run's own model folder. */
  constructor(model?: string) {
    this.#model = model;
  }

  /** @throws UsageError where the line is no training row. */
  async read(run: RunIndex, line: Buffer): Promise<RowColumns> {
    const stopIds = stopIdsOf(run);
    return readRow(line, {
      ...(stopIds === undefined ? {} : { stopIds }),
      ...(await this.#vocabularyOf(run)),
    });
  }

  /** Loads what spells a run's tokens before anyone asks. */
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

/** @throws UsageError where there is none, or it is broken. */
async function loadVocabulary(folder: string): Promise<Vocabulary> {
  const vocabulary = createVocabulary(await readTokenizerFile(folder));
  // Reads it whole.
  vocabulary.tokenOf(0);
  return vocabulary;
}

/** Ids that end a turn, where the run's template was measured. */
function stopIdsOf({ manifest }: RunIndex): ReadonlySet<number> | undefined {
  const { template } = manifest.found as { readonly template?: { readonly stopIds?: unknown } };
  const ids = template?.stopIds;
  return Array.isArray(ids) ? new Set(ids as readonly number[]) : undefined;
}

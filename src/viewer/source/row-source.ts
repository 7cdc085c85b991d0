import { UsageError } from "../../errors.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import type { RowColumns } from "../model/row-columns.ts";
import { readRow } from "./read-row.ts";
import { modelFolderOf, type RunIndex } from "./run-index.ts";

/** Reads training rows with the tokenizer that their run was played with, each loaded once. */
export class RowSource {
  readonly #model: string | undefined;
  readonly #codecs = new Map<string, Promise<TokenCodec>>();

  /** `model` takes the place of every run's own model folder. */
  constructor(model?: string) {
    this.#model = model;
  }

  /** @throws UsageError where the line is no training row. */
  async read(run: RunIndex, line: Buffer): Promise<RowColumns> {
    const stopIds = stopIdsOf(run);
    return await readRow(line, {
      ...(stopIds === undefined ? {} : { stopIds }),
      ...(await this.#codecOf(run)),
    });
  }

  /** Ends what the codecs keep running. */
  async close(): Promise<void> {
    for (const [, codec] of this.#codecs) {
      await codec.then(
        (loaded) => loaded.close?.(),
        () => undefined,
      );
    }
  }

  async #codecOf(
    run: RunIndex,
  ): Promise<{ readonly codec: TokenCodec } | { readonly codecNote: string }> {
    const folder = this.#model ?? modelFolderOf(run);
    if (folder === undefined) {
      return { codecNote: "the run does not say which tokenizer it used: name one with --model" };
    }
    const loading = this.#codecs.get(folder) ?? loadTokenCodec(folder);
    this.#codecs.set(folder, loading);
    try {
      return { codec: await loading };
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return { codecNote: `the tokenizer in ${folder} is not here: name its folder with --model` };
    }
  }
}

/** Ids that end a turn, where the run's template was measured. */
function stopIdsOf({ manifest }: RunIndex): ReadonlySet<number> | undefined {
  const { template } = manifest.found as { readonly template?: { readonly stopIds?: unknown } };
  const ids = template?.stopIds;
  return Array.isArray(ids) ? new Set(ids as readonly number[]) : undefined;
}

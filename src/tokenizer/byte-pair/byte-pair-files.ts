import { writeMergeLines } from "./merge-lines.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** A byte-pair model in the form that the library reads at a third of the memory. */
export interface BytePairFiles {
  /** JSON: ids by spelling. */
  readonly vocabulary: Uint8Array;
  /** A line for each merge: two spellings with a space between them. */
  readonly merges: Uint8Array;
  /** The library's further options of the model. */
  readonly options: BytePairOptions;
}

/** What the library lets a model be told beside its vocabulary and merges. */
interface BytePairOptions {
  readonly unkToken?: string;
  readonly continuingSubwordPrefix?: string;
  readonly endOfWordSuffix?: string;
  readonly fuseUnk?: boolean;
  readonly byteFallback?: boolean;
}

/**
 * The two files that hold the model of a `tokenizer.json`, or `undefined` where they could not say all
 * that it says: another kind of model, an option that they have no place for, a spelling with a space
 * or the end of a line in it.
 */
export function toBytePairFiles({
  outline,
  bytes,
  model,
}: TokenizerFile): BytePairFiles | undefined {
  const { vocabulary, hasIdsAlone, merges: extent } = model;
  const options = readOptions(outline["model"] as Readonly<Record<string, unknown>>);
  if (options === undefined || extent === undefined || !hasIdsAlone) return undefined;
  const merges = writeMergeLines(bytes, extent[0]);
  return merges && { vocabulary: bytes.subarray(...vocabulary), merges, options };
}

function readOptions(model: Readonly<Record<string, unknown>>): BytePairOptions | undefined {
  const {
    type,
    dropout = null,
    ignore_merges: ignoreMerges = false,
    unk_token: unkToken = null,
    continuing_subword_prefix: continuingSubwordPrefix = null,
    end_of_word_suffix: endOfWordSuffix = null,
    fuse_unk: fuseUnk = false,
    byte_fallback: byteFallback = false,
    ...others
  } = model;
  const texts = { unkToken, continuingSubwordPrefix, endOfWordSuffix };
  const flags = { fuseUnk, byteFallback };
  if (type !== "BPE" || dropout !== null || ignoreMerges !== false) return undefined;
  if (Object.keys(others).length > 0) return undefined;
  if (!Object.values(texts).every((text) => text === null || typeof text === "string")) {
    return undefined;
  }
  if (!Object.values(flags).every((flag) => typeof flag === "boolean")) return undefined;
  const given = Object.entries({ ...texts, ...flags }).filter(([, value]) => value !== null);
  return Object.fromEntries(given);
}

import { writeMergeLines } from "./merge-lines.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** A byte-pair model in the format that the library reads with a third of the memory. */
export interface BytePairFiles {
  /** JSON: ids by token text. */
  readonly vocabulary: Uint8Array;
  /** A line for each merge: two token texts with a space between them. */
  readonly merges: Uint8Array;
  /** Further options of the model. */
  readonly options: BytePairOptions;
}

/** The library's options of a model other than vocabulary and merges. */
interface BytePairOptions {
  readonly unkToken?: string;
  readonly continuingSubwordPrefix?: string;
  readonly endOfWordSuffix?: string;
  readonly fuseUnk?: boolean;
  readonly byteFallback?: boolean;
}

/**
 * Converts the member `model` of a `tokenizer.json` to a vocabulary file and a file of merges. Returns `undefined` if
 * these files cannot express it: it is not BPE, has an unsupported option, or merges a token whose text has a space or a
 * line end.
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

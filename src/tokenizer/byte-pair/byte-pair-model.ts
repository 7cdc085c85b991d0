import type { JsonObject } from "../../values/is-object.ts";
import { isUtf8 } from "node:buffer";
import { type AddedTokenRecord, readAddedTokenRecords } from "../added-token-records.ts";
import { byteCharacters, endsInBytes } from "./byte-level.ts";
import { createPieceMerger, type PieceMerger } from "./merge-piece.ts";
import type { TokenTexts } from "./token-texts.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** A byte-level byte-pair model that is merged here, not in the library. */
interface BytePairModel {
  readonly tokenTexts: TokenTexts;
  readonly merger: PieceMerger;
  readonly added: readonly AddedTokenRecord[];
}

/**
 * Reads the model of a file. Returns `undefined` for a model that lacks a byte, that does more than
 * merge pairs, or that relies on a default of the library.
 */
export function readBytePairModel(file: TokenizerFile): BytePairModel | undefined {
  const { outline, bytes, model } = file;
  const { tokenTexts, mergeTable: table } = model;
  if (tokenTexts === undefined || table === undefined) return undefined;
  if (!isUtf8(bytes) || !endsInBytes(outline["pre_tokenizer"])) return undefined;
  if (repeatsText(outline["post_processor"])) return undefined;
  const options = outline["model"] as JsonObject;
  if (!isPlainMerge(options)) return undefined;
  const byteIds = Int32Array.from(byteCharacters, (tokenText) => tokenTexts.idOf(tokenText) ?? -1);
  if (byteIds.includes(-1)) return undefined;
  const added = readAddedTokenRecords(outline);
  if (added === undefined || !haveLibraryIds(added, tokenTexts)) return undefined;
  // The library decodes such a token to its normalised text.
  const isNormalized = added.some(({ normalized }) => normalized);
  if (isNormalized && !isIdentity(outline["normalizer"])) return undefined;
  const wholePieces = options["ignore_merges"] === true && {
    idOfTokenText: (tokenText: string) => tokenTexts.idOf(tokenText),
    longestTokenText: tokenTexts.longest,
  };
  return { tokenTexts, merger: createPieceMerger({ table, byteIds, ...wholePieces }), added };
}

/**
 * True if merging is not random and does not mark the start or end of a piece. The option for
 * unknown tokens is allowed, because every byte is known.
 */
function isPlainMerge(model: JsonObject): boolean {
  const {
    type,
    dropout = null,
    ignore_merges: ignoreMerges = false,
    unk_token: unknown = null,
    continuing_subword_prefix: prefix = null,
    end_of_word_suffix: suffix = null,
    fuse_unk: fuses = false,
    byte_fallback: fallsBack = false,
    ...others
  } = model;
  const marksNothing = [prefix, suffix].every((mark) => mark === null || mark === "");
  return (
    type === "BPE" &&
    dropout === null &&
    (unknown === null || typeof unknown === "string") &&
    [ignoreMerges, fuses, fallsBack].every((flag) => typeof flag === "boolean") &&
    marksNothing &&
    Object.keys(others).length === 0
  );
}

/** True if there is no normaliser, or an empty sequence. */
export function isIdentity(normalizer: unknown): boolean {
  const { type, normalizers } = (normalizer ?? {}) as JsonObject;
  const isEmpty = type === "Sequence" && Array.isArray(normalizers) && normalizers.length === 0;
  return normalizer === null || normalizer === undefined || isEmpty;
}

/** True if a post-processor may repeat a text. The library then numbers its pieces ambiguously. */
function repeatsText(postProcessor: unknown): boolean {
  const { type, processors, single } = (postProcessor ?? {}) as JsonObject;
  if (type === "Sequence") return Array.isArray(processors) && processors.some(repeatsText);
  if (type !== "TemplateProcessing" || !Array.isArray(single)) return false;
  return single.filter((item: JsonObject) => "Sequence" in item).length > 1;
}

/**
 * True if the library gives the added tokens the ids of the file. Tokens in the vocabulary keep its
 * id, and all others are numbered after it. If the vocabulary has gaps, releases of the library
 * number them differently. A token must not be a byte's character or occur twice.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/tokenizer/added_vocabulary.rs`
 * (`add_tokens`).
 */
function haveLibraryIds(added: readonly AddedTokenRecord[], tokenTexts: TokenTexts): boolean {
  const usedTexts = new Set(["", ...byteCharacters]);
  let next = tokenTexts.count;
  for (const { content, id } of added) {
    const known = tokenTexts.idOf(content);
    if (known === undefined && !tokenTexts.isGapless) return false;
    if ((known ?? next) !== id || usedTexts.has(content)) return false;
    usedTexts.add(content);
    if (known === undefined) next += 1;
  }
  return true;
}

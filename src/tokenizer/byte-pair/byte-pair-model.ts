import { isUtf8 } from "node:buffer";
import { type AddedTokenRecord, readAddedTokenRecords } from "../added-token-records.ts";
import { byteSpellings, endsInBytes } from "./byte-level.ts";
import { createPieceMerger, type PieceMerger } from "./merge-piece.ts";
import type { JsonObject } from "../model-file.ts";
import type { Spellings } from "./spellings.ts";
import type { TokenizerFile } from "../tokenizer-file.ts";

/** A byte-level byte-pair model that is worked here. */
interface BytePairModel {
  readonly spellings: Spellings;
  readonly merger: PieceMerger;
  readonly added: readonly AddedTokenRecord[];
}

/**
 * The model of a file, where it is one that knows every byte, merges pairs of what its vocabulary holds, and does
 * nothing else; `undefined` where it is another, or says anything that is left to the library.
 */
export function readBytePairModel(file: TokenizerFile): BytePairModel | undefined {
  const { outline, bytes, model } = file;
  const { spellings, mergeTable: table } = model;
  if (spellings === undefined || table === undefined) return undefined;
  if (!isUtf8(bytes) || !endsInBytes(outline["pre_tokenizer"])) return undefined;
  if (repeatsText(outline["post_processor"])) return undefined;
  const options = outline["model"] as JsonObject;
  if (!mergesAlone(options)) return undefined;
  const byteIds = Int32Array.from(byteSpellings, (spelling) => spellings.idOf(spelling) ?? -1);
  if (byteIds.includes(-1)) return undefined;
  const added = readAddedTokenRecords(outline);
  if (added === undefined || !areNumberedOn(added, spellings)) return undefined;
  // Such a token is decoded to what the normaliser makes of it.
  const isNormalized = added.some(({ normalized }) => normalized);
  if (isNormalized && !leavesAll(outline["normalizer"])) return undefined;
  const wholes = options["ignore_merges"] === true && {
    idOfWhole: (spelling: string) => spellings.idOf(spelling),
    longestWhole: spellings.longest,
  };
  return { spellings, merger: createPieceMerger({ table, byteIds, ...wholes }), added };
}

/** Nothing random, and nothing that marks where a piece begins or ends; what is unknown never occurs. */
function mergesAlone(model: JsonObject): boolean {
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

/** Whether there is no normaliser, or a sequence of none. */
function leavesAll(normalizer: unknown): boolean {
  const { type, normalizers } = (normalizer ?? {}) as JsonObject;
  const isEmpty = type === "Sequence" && Array.isArray(normalizers) && normalizers.length === 0;
  return normalizer === null || normalizer === undefined || isEmpty;
}

/** Whether a post-processor may give a text more than once: its pieces are no longer told apart by their numbers. */
function repeatsText(postProcessor: unknown): boolean {
  const { type, processors, single } = (postProcessor ?? {}) as JsonObject;
  if (type === "Sequence") return Array.isArray(processors) && processors.some(repeatsText);
  if (type !== "TemplateProcessing" || !Array.isArray(single)) return false;
  return single.filter((item: JsonObject) => "Sequence" in item).length > 1;
}

/**
 * Whether the library numbers the added tokens as the file does: those that the vocabulary holds keep its id, all
 * others are numbered on from behind it. From behind one with gaps its releases number differently. None is the
 * spelling of a byte, and none is there twice.
 *
 * **Source:** huggingface/tokenizers, `tokenizers/src/tokenizer/added_vocabulary.rs` (`add_tokens`).
 */
function areNumberedOn(added: readonly AddedTokenRecord[], spellings: Spellings): boolean {
  const taken = new Set(["", ...byteSpellings]);
  let next = spellings.count;
  for (const { content, id } of added) {
    const known = spellings.idOf(content);
    if (known === undefined && !spellings.isGapless) return false;
    if ((known ?? next) !== id || taken.has(content)) return false;
    taken.add(content);
    if (known === undefined) next += 1;
  }
  return true;
}

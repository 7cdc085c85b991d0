import { isDeepStrictEqual } from "node:util";
import { readAddedTokenRecords } from "./added-token-records.ts";
import { readBytePairModel } from "./byte-pair/byte-pair-model.ts";
import type { JsonObject } from "./model-file.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { isWellKnown } from "./well-known.ts";

/**
 * Whether the library in JavaScript gives a file's ids as the native one does: whether it is of a kind of which real
 * files were held against each other. These are byte-pair models of bytes, as of Llama 3, Qwen, DeepSeek and gpt-oss,
 * and those of Llama 2 and Gemma, which spell spaces and fall back on bytes. Vocabularies with scores, other
 * normalisers, single digits (of which it knows those of ASCII alone) and added tokens that take white space with them
 * come out otherwise.
 */
export function isAlikeInJavascript(file: TokenizerFile): boolean {
  const added = readAddedTokenRecords(file.outline);
  const isPlain = added?.every((token) => !token.lstrip && !token.rstrip && !token.single_word);
  return isPlain === true && isWellKnown(file) && (isOfBytes(file) || isOfSpelledSpaces(file));
}

function isOfBytes(file: TokenizerFile): boolean {
  const { normalizer, pre_tokenizer: cutter, decoder, model } = file.outline;
  const { unk_token: unknown = null, byte_fallback: fallsBack = false } = model as JsonObject;
  return (
    readBytePairModel(file) !== undefined &&
    unknown === null &&
    fallsBack === false &&
    normalizersOfBytes.some((one) => isDeepStrictEqual(one, normalizer ?? null)) &&
    cutsIntoBytes(cutter) &&
    (decoder as JsonObject | null | undefined)?.["type"] === "ByteLevel"
  );
}

const normalizersOfBytes = [null, { type: "NFC" }, { type: "Sequence", normalizers: [] }];

/** Patterns of which each match is a piece, and then the bytes; or the bytes alone, by GPT-2's pattern. */
function cutsIntoBytes(cutter: unknown): boolean {
  const { type, pretokenizers } = cutter as JsonObject;
  const steps = type === "Sequence" ? (pretokenizers as readonly JsonObject[]) : [cutter];
  const splits = steps.slice(0, -1) as readonly JsonObject[];
  const bytes = steps.at(-1) as JsonObject;
  return (
    bytes["add_prefix_space"] === false &&
    (splits.length === 0 || bytes["use_regex"] === false) &&
    splits.every((split) => {
      const { type: kind, pattern, behavior, invert } = split;
      const ways = [["Isolated", false] as const, ["Removed", true] as const];
      const isMatch = ways.some(([how, inverted]) => how === behavior && inverted === invert);
      return kind === "Split" && "Regex" in (pattern as JsonObject) && isMatch;
    })
  );
}

function isOfSpelledSpaces(file: TokenizerFile): boolean {
  const { normalizer, pre_tokenizer: cutter, decoder, model } = file.outline;
  const {
    type,
    unk_token: unknown,
    fuse_unk: fuses,
    byte_fallback: fallsBack,
  } = model as JsonObject;
  const { ignore_merges: ignoresMerges = false } = model as JsonObject;
  const isOf = (part: unknown, known: readonly unknown[]): boolean =>
    known.some((one) => isDeepStrictEqual(one, part ?? null));
  return (
    type === "BPE" &&
    typeof unknown === "string" &&
    [fuses, fallsBack].every((flag) => flag === true) &&
    ignoresMerges === false &&
    isOf(normalizer, [
      spellSpaces,
      { type: "Sequence", normalizers: [spaceBefore, spellSpaces] },
    ]) &&
    isOf(cutter, [null, cutAtSpaces]) &&
    isOf(decoder, [
      { type: "Sequence", decoders: readSpaces },
      { type: "Sequence", decoders: [...readSpaces, noSpaceBefore] },
    ]) &&
    mergesWhatIsThere(file)
  );
}

const spellSpaces = { type: "Replace", pattern: { String: " " }, content: "▁" };
const spaceBefore = { type: "Prepend", prepend: "▁" };
const cutAtSpaces = {
  type: "Split",
  pattern: { String: " " },
  behavior: "MergedWithPrevious",
  invert: false,
};
const readSpaces = [
  { type: "Replace", pattern: { String: "▁" }, content: " " },
  { type: "ByteFallback" },
  { type: "Fuse" },
];
const noSpaceBefore = { type: "Strip", content: " ", start: 1, stop: 0 };

/** Whether a vocabulary has each byte and what its merges are of: the library in JavaScript takes others, too. */
function mergesWhatIsThere(file: TokenizerFile): boolean {
  const { bytes, model } = file;
  const ids = file.readIds();
  const hasByte = (_: unknown, byte: number): boolean =>
    ids.has(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`) ||
    // Nothing falls back on the byte of a character that is there, as Gemma 2's tabulator.
    (byte < 0x80 && ids.has(String.fromCharCode(byte)));
  if (model.merges === undefined || !model.hasIdsAlone) return false;
  const merges = JSON.parse(bytes.toString("utf8", ...model.merges)) as unknown;
  return (
    Array.from({ length: 256 }, hasByte).every(Boolean) &&
    Array.isArray(merges) &&
    merges.every((merge: unknown) => {
      const pair = typeof merge === "string" ? merge.split(" ") : merge;
      if (!Array.isArray(pair) || pair.length !== 2) return false;
      return [...(pair as unknown[]), pair.join("")].every((spelling) => ids.has(String(spelling)));
    })
  );
}

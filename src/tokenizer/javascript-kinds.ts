import type { JsonObject } from "../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import { readAddedTokenRecords } from "./added-token-records.ts";
import { readBytePairModel } from "./byte-pair/byte-pair-model.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { isWellKnown } from "./well-known.ts";

/**
 * True if the library in JavaScript gives the same ids as the native one for a file. Real files of
 * these kinds were compared:
 *
 * - Byte-pair models of bytes, as in Llama 3, Qwen, DeepSeek and gpt-oss.
 * - Byte-pair models with `▁` for spaces and byte fallback, as in Llama 2 and Gemma.
 *
 * It gives other ids for vocabularies with scores, other normalisers, splitting into single digits
 * (it only knows ASCII digits), and added tokens that match adjacent white space.
 */
export function isExactInJavascript(file: TokenizerFile): boolean {
  const added = readAddedTokenRecords(file.outline);
  const isPlain = added?.every((token) => !token.lstrip && !token.rstrip && !token.single_word);
  return isPlain === true && isWellKnown(file) && (isByteLevel(file) || isMetaspace(file));
}

function isByteLevel(file: TokenizerFile): boolean {
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

/**
 * True if the pre-tokenizer splits text only by regular expressions, its own or GPT-2's, and then
 * turns each part into bytes.
 */
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

function isMetaspace(file: TokenizerFile): boolean {
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
      encodeSpaces,
      { type: "Sequence", normalizers: [spaceBefore, encodeSpaces] },
    ]) &&
    isOf(cutter, [null, cutAtSpaces]) &&
    isOf(decoder, [
      { type: "Sequence", decoders: decodeSpaces },
      { type: "Sequence", decoders: [...decodeSpaces, noSpaceBefore] },
    ]) &&
    hasCompleteMerges(file)
  );
}

const encodeSpaces = { type: "Replace", pattern: { String: " " }, content: "▁" };
const spaceBefore = { type: "Prepend", prepend: "▁" };
const cutAtSpaces = {
  type: "Split",
  pattern: { String: " " },
  behavior: "MergedWithPrevious",
  invert: false,
};
const decodeSpaces = [
  { type: "Replace", pattern: { String: "▁" }, content: " " },
  { type: "ByteFallback" },
  { type: "Fuse" },
];
const noSpaceBefore = { type: "Strip", content: " ", start: 1, stop: 0 };

/**
 * True if the vocabulary has all bytes and all parts and results of its merges. The library in
 * JavaScript also accepts others.
 */
function hasCompleteMerges(file: TokenizerFile): boolean {
  const { bytes, model } = file;
  const ids = file.readIds();
  const hasByte = (_: unknown, byte: number): boolean =>
    ids.has(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`) ||
    // No text falls back on the byte of a character in the vocabulary, such as the tab in Gemma 2.
    (byte < 0x80 && ids.has(String.fromCharCode(byte)));
  if (model.merges === undefined || !model.hasIdsAlone) return false;
  const merges = JSON.parse(bytes.toString("utf8", ...model.merges)) as unknown;
  return (
    Array.from({ length: 256 }, hasByte).every(Boolean) &&
    Array.isArray(merges) &&
    merges.every((merge: unknown) => {
      const pair = typeof merge === "string" ? merge.split(" ") : merge;
      if (!Array.isArray(pair) || pair.length !== 2) return false;
      return [...(pair as unknown[]), pair.join("")].every((tokenText) =>
        ids.has(String(tokenText)),
      );
    })
  );
}

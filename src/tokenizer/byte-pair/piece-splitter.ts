import type { JsonObject } from "../../values/is-object.ts";
import { objectOf } from "../model-file.ts";

/**
 * The ends of the pieces of a text, in UTF-16 units. Each piece starts at the end of the one
 * before.
 */
export interface Cuts {
  /** Number of pieces. */
  count: number;
  /** Ends of the pieces. Values from index `count` on are left over from longer texts. */
  readonly ends: number[];
}

/**
 * Cuts a text into the pieces that a tokenizer's model encodes one by one: words and added tokens.
 * The next call overwrites the result, because texts are cut each turn and have dozens of pieces.
 */
export type PieceCutter = (text: string) => Cuts | undefined;

/** True if the text has only settled characters. */
export function isSettled(text: string): boolean {
  return settledText.test(text);
}

/**
 * Settled characters: every release of Unicode classifies them alike and no normal form composes
 * them, so that JavaScript's patterns and the library's agree on them.
 *
 * They are most of Latin, Greek, Cyrillic, Chinese, Japanese and Korean. `ſ` is not one, because it
 * folds to `s`, for which JavaScript needs another flag.
 */
const settledText = new RegExp(
  "^[\\t\\n\\r -~\u00a0-\u00a9\u00ab-\u00b9\u00bb-\u017e\u0180-\u024f\u0391-\u03a1\u03a3-\u03ab\u03b1-\u03c9\u0400-\u045f" +
    "\u2010-\u2027\u2030-\u205e\u20ac\u2122\u2190-\u21ff\u3001-\u3003\u3008-\u3011" +
    "\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fa5\uac00-\ud7a3\uff01-\uff5e]*$",
  "u",
);

/**
 * Creates a cutter for a tokenizer that keeps settled characters when normalising, finds pieces by
 * patterns, and has a model of bytes. The cutter returns `undefined` for texts with other
 * characters.
 *
 * @param outline - The document of a tokenizer whose patterns are known (`isWellKnown()`).
 * @returns `undefined` for another kind of tokenizer.
 */
export function createPieceCutter(outline: JsonObject): PieceCutter | undefined {
  const patterns = readPatterns(outline["pre_tokenizer"]);
  const literals = readLiterals(outline["added_tokens"] ?? []);
  if (!keepsSettledText(outline["normalizer"]) || !isPlainBpe(outline["model"])) return undefined;
  if (patterns === undefined || literals === undefined) return undefined;
  const cuts: Cuts = { count: 0, ends: [] };
  return (text) => {
    if (!isSettled(text)) return undefined;
    cuts.count = 0;
    let from = 0;
    if (literals !== null) {
      literals.lastIndex = 0;
      for (let found = literals.exec(text); found !== null; found = literals.exec(text)) {
        cutPart(text, from, found.index, patterns, cuts);
        from = literals.lastIndex;
        cuts.ends[cuts.count++] = from;
      }
    }
    cutPart(text, from, text.length, patterns, cuts);
    return cuts;
  };
}

/** Returns the pieces as texts. */
export function piecesOf(text: string, { count, ends }: Cuts): readonly string[] {
  return ends.slice(0, count).map((end, place) => text.slice(ends[place - 1] ?? 0, end));
}

/** A pattern in two forms: one matches only at `lastIndex`, the other finds the next match. */
interface Pattern {
  readonly here: RegExp;
  readonly next: RegExp;
}

/** Cuts a part of a text by several patterns in order. */
function cutPart(
  text: string,
  from: number,
  to: number,
  patterns: readonly Pattern[],
  cuts: Cuts,
  level = 0,
): void {
  if (from === to) return;
  const pattern = patterns[level];
  if (pattern === undefined) {
    cuts.ends[cuts.count++] = to;
    return;
  }
  // A pattern must not see the text around the part.
  const part = text.slice(from, to);
  const isLast = level === patterns.length - 1;
  for (let at = 0, end = 0; at < part.length; at = end) {
    end = endOfPiece(part, at, pattern);
    if (isLast) cuts.ends[cuts.count++] = from + end;
    else cutPart(text, from + at, from + end, patterns, cuts, level + 1);
  }
}

/** Returns the end of the match at this position, or of the text before the next match. */
function endOfPiece(part: string, at: number, { here, next }: Pattern): number {
  here.lastIndex = at;
  if (here.test(part) && here.lastIndex > at) return here.lastIndex;
  next.lastIndex = at;
  return Math.max(at + 1, next.exec(part)?.index ?? part.length);
}

function keepsSettledText(normalizer: unknown): boolean {
  return normalizer === null || normalizer === undefined || typeOf(normalizer) === "NFC";
}

/**
 * True for a byte-pair model without randomness and without marks for the start or end of a piece.
 */
function isPlainBpe(model: unknown): boolean {
  const {
    dropout,
    continuing_subword_prefix: prefix,
    end_of_word_suffix: suffix,
  } = objectOf(model);
  return typeOf(model) === "BPE" && !dropout && !prefix && !suffix;
}

/** Reads the patterns that cut in order, before bytes are encoded as characters. */
function readPatterns(preTokenizer: unknown): readonly Pattern[] | undefined {
  const { pretokenizers } = objectOf(preTokenizer);
  const steps = Array.isArray(pretokenizers) ? (pretokenizers as unknown[]) : [preTokenizer];
  const last = objectOf(steps.at(-1));
  if (last["type"] !== "ByteLevel" || last["add_prefix_space"] !== false) return undefined;
  const patterns = steps.slice(0, -1).map((step) => {
    const { type, pattern, behavior, invert } = objectOf(step);
    const isCut = type === "Split" && behavior === "Isolated" && invert === false;
    return isCut ? toJavascript(objectOf(pattern)["Regex"]) : undefined;
  });
  if (last["use_regex"] !== false) patterns.push(toJavascript(byteLevelPattern));
  return patterns.every((pattern) => pattern !== undefined) ? patterns : undefined;
}

/** **Source:** huggingface/tokenizers, `tokenizers/src/pre_tokenizers/byte_level.rs`. */
const byteLevelPattern = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const foldedContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const expandedContractions = "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])";

/** Converts a pattern if it means the same in JavaScript for settled characters. */
function toJavascript(pattern: unknown): Pattern | undefined {
  if (typeof pattern !== "string") return undefined;
  const expanded = pattern.replaceAll(foldedContractions, expandedContractions);
  if (/\(\?(?![:!])/.test(expanded)) return undefined;
  return { here: new RegExp(expanded, "uy"), next: new RegExp(expanded, "gu") };
}

/**
 * Returns the pattern of the added tokens, or `null` for an empty list. Returns `undefined` if a
 * token also matches adjacent spaces, matches only complete words, or is searched in normalised
 * text.
 */
function readLiterals(entries: unknown): RegExp | null | undefined {
  if (!Array.isArray(entries)) return undefined;
  if (entries.length === 0) return null;
  const contents: string[] = [];
  for (const entry of entries as unknown[]) {
    const { content, single_word: word, lstrip, rstrip, normalized } = objectOf(entry);
    if (typeof content !== "string" || content === "") return undefined;
    if (word !== false || lstrip !== false || rstrip !== false || normalized !== false) {
      return undefined;
    }
    contents.push(content);
  }
  const longestFirst = contents.toSorted((left, right) => right.length - left.length);
  const escaped = longestFirst.map((content) => content.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(escaped.join("|"), "gu");
}

function typeOf(part: unknown): unknown {
  return objectOf(part)["type"];
}

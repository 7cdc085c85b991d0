import type { JsonObject } from "../../values/is-object.ts";
import { type AddedTokenRecord, readAddedTokenRecords } from "../added-token-records.ts";
import { objectOf } from "../model-file.ts";
import { isIdentity } from "./byte-pair-model.ts";
import { CharacterTable } from "./character-table.ts";
import { copyOf, createTextDivider, type TextDivider } from "./text-divider.ts";

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

/** Cuts texts into the pieces that a tokenizer's model encodes one by one: words and added tokens. */
export interface PieceCutter {
  /** Divides a text into added tokens and stretches that are cut one by one. */
  readonly divide: TextDivider;
  /**
   * Cuts a settled stretch from `at` on. The first piece starts there. Stops after a few thousand
   * units. The next call overwrites the pieces, because texts have thousands of them.
   */
  readonly cut: (stretch: string, at: number) => Cuts;
}

/** Number of UTF-16 units after which a cut stops, so that callers can yield to other tasks. */
const cutLength = 4096;

/**
 * Creates a cutter for a tokenizer that normalises to NFC or not at all, finds pieces by patterns,
 * and has a model of bytes.
 *
 * @param outline - The document of a tokenizer whose patterns are known (`isWellKnown()`).
 * @returns `undefined` for another kind of tokenizer.
 */
export function createPieceCutter(outline: JsonObject): PieceCutter | undefined {
  const normalization = readNormalization(outline["normalizer"]);
  const tokens = readLiterals(outline, normalization === "none");
  const patterns = readPatterns(outline["pre_tokenizer"]);
  if (normalization === undefined || !isPlainBpe(outline["model"])) return undefined;
  if (patterns === undefined || tokens === undefined) return undefined;
  const divide = createTextDivider({
    characters: new CharacterTable(tokens),
    tokens,
    normalizes: normalization === "NFC",
    hasBoundaries: patterns.at(-1)?.matchesAllSpace === true,
  });
  const cuts: Cuts = { count: 0, ends: [] };
  const [first, ...others] = patterns;
  const cut = (stretch: string, at: number): Cuts => {
    cuts.count = 0;
    if (first === undefined) {
      cuts.ends[cuts.count++] = stretch.length;
      return cuts;
    }
    const limit = Math.min(stretch.length, at + cutLength);
    for (let from = at; from < limit;) {
      const end = endOfPiece(stretch, from, first);
      if (others.length === 0) cuts.ends[cuts.count++] = end;
      else cutPart(stretch, from, end, others, cuts);
      from = end;
    }
    return cuts;
  };
  return { divide, cut };
}

/** Cuts a text into pieces. Returns `undefined` if it has unsettled characters. */
export function cutText(cutter: PieceCutter, text: string): readonly string[] | undefined {
  const pieces: string[] = [];
  for (const { kind, text: stretch } of cutter.divide(text, true)) {
    if (kind === "unsettled") return undefined;
    if (kind === "token") {
      pieces.push(stretch);
      continue;
    }
    for (let from = 0; from < stretch.length;) {
      const { count, ends } = cutter.cut(stretch, from);
      for (const end of ends.slice(0, count)) {
        pieces.push(stretch.slice(from, end));
        from = end;
      }
    }
  }
  return pieces;
}

/** A pattern in two forms: one matches only at `lastIndex`, the other finds the next match. */
interface Pattern {
  readonly here: RegExp;
  readonly next: RegExp;
  /** True if an alternative matches every run of white space. */
  readonly matchesAllSpace: boolean;
}

/** Cuts a part of a text by several patterns in order. */
function cutPart(
  text: string,
  from: number,
  to: number,
  [pattern, ...others]: readonly Pattern[],
  cuts: Cuts,
): void {
  if (pattern === undefined) {
    cuts.ends[cuts.count++] = to;
    return;
  }
  // A pattern must not see the text around the part.
  const part = copyOf(text.slice(from, to));
  for (let at = 0, end = 0; at < part.length; at = end) {
    end = endOfPiece(part, at, pattern);
    if (others.length === 0) cuts.ends[cuts.count++] = from + end;
    else cutPart(text, from + at, from + end, others, cuts);
  }
}

/** Returns the end of the match at this position, or of the text before the next match. */
function endOfPiece(part: string, at: number, { here, next }: Pattern): number {
  here.lastIndex = at;
  if (here.test(part) && here.lastIndex > at) return here.lastIndex;
  next.lastIndex = at;
  return Math.max(at + 1, next.exec(part)?.index ?? part.length);
}

/** Returns the normal form of a normaliser, or `undefined` for a normaliser of another kind. */
function readNormalization(normalizer: unknown): "NFC" | "none" | undefined {
  if (isIdentity(normalizer)) return "none";
  return objectOf(normalizer)["type"] === "NFC" ? "NFC" : undefined;
}

/**
 * True for a byte-pair model without randomness and without marks for the start or end of a piece.
 */
function isPlainBpe(model: unknown): boolean {
  const {
    type,
    dropout,
    continuing_subword_prefix: prefix,
    end_of_word_suffix: suffix,
  } = objectOf(model);
  return type === "BPE" && !dropout && !prefix && !suffix;
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
/** U+017F is a small s too. */
const expandedContractions = "(?:'(?:[sS\u017ftTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))";

const whiteSpaceEscapes: Readonly<Record<string, string>> = {
  [String.raw`\s`]: String.raw`\p{White_Space}`,
  [String.raw`\S`]: String.raw`\P{White_Space}`,
};

/** Converts a pattern if it means the same in JavaScript for settled characters. */
function toJavascript(pattern: unknown): Pattern | undefined {
  if (typeof pattern !== "string") return undefined;
  const expanded = pattern
    .replaceAll(foldedContractions, expandedContractions)
    // JavaScript's own white space has U+FEFF and lacks U+0085.
    .replaceAll(/\\[^]/g, (escape) => whiteSpaceEscapes[escape] ?? escape);
  if (/\(\?(?![:!])/.test(expanded)) return undefined;
  return {
    here: new RegExp(expanded, "uy"),
    next: new RegExp(expanded, "gu"),
    matchesAllSpace: pattern === String.raw`\s+` || pattern.endsWith(String.raw`|\s+`),
  };
}

/**
 * Returns the texts of the added tokens. Returns `undefined` if a token also matches adjacent
 * spaces or halves of surrogate pairs, matches only complete words, or is searched in text that was
 * changed.
 *
 * The library searches for tokens that are not normalised first. A text has the same tokens in one
 * search if none of them overlaps one of the others.
 */
function readLiterals(outline: JsonObject, keepsText: boolean): readonly string[] | undefined {
  const tokens = readAddedTokenRecords(outline);
  const isLiteral = ({ content, single_word: word, lstrip, rstrip }: AddedTokenRecord): boolean =>
    content !== "" && !word && !lstrip && !rstrip && !content.includes("\uFFFD");
  if (tokens === undefined || !tokens.every(isLiteral)) return undefined;
  const raw = tokens.filter(({ normalized }) => !normalized).map(({ content }) => content);
  const normalized = tokens.filter((token) => token.normalized).map(({ content }) => content);
  if (normalized.length > 0 && !keepsText) return undefined;
  const overlaps = normalized.some((left) => raw.some((right) => mayOverlap(left, right)));
  return overlaps ? undefined : [...raw, ...normalized];
}

/** True if a text can have both literals with a common character. */
function mayOverlap(left: string, right: string): boolean {
  if (left.includes(right) || right.includes(left)) return true;
  for (let length = 1; length < Math.min(left.length, right.length); length++) {
    if (left.endsWith(right.slice(0, length)) || right.endsWith(left.slice(0, length))) return true;
  }
  return false;
}

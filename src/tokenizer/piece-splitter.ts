import type { JsonObject } from "./model-file.ts";

/** Cuts a text into the pieces that a tokenizer's model sees one by one: words, and added tokens. */
export type PieceSplitter = (text: string) => readonly string[] | undefined;

/** Whether the text has no characters but settled ones. */
export function isSettled(text: string): boolean {
  return settledText.test(text);
}

/**
 * Characters that every release of Unicode classifies alike and no normal form composes, so that
 * JavaScript's patterns and the library's cannot differ over them: most of what is written in Latin,
 * Greek, Cyrillic, Chinese, Japanese and Korean. `ſ` folds to `s`, which JavaScript needs another flag for.
 */
const settledText = new RegExp(
  "^[\\t\\n\\r -~\u00a0-\u00a9\u00ab-\u00b9\u00bb-\u017e\u0180-\u024f\u0391-\u03a1\u03a3-\u03ab\u03b1-\u03c9\u0400-\u045f" +
    "\u2010-\u2027\u2030-\u205e\u20ac\u2122\u2190-\u21ff\u3001-\u3003\u3008-\u3011" +
    "\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fa5\uac00-\ud7a3\uff01-\uff5e]*$",
  "u",
);

/**
 * Makes the splitter of a tokenizer whose normaliser leaves settled characters alone, whose pieces are
 * found by patterns, and whose model then works on bytes. It answers `undefined` for texts with other
 * characters.
 *
 * @param outline - The document of a tokenizer whose patterns are known (`isWellKnown()`).
 * @returns `undefined` where the tokenizer is of another kind.
 */
export function createPieceSplitter(outline: JsonObject): PieceSplitter | undefined {
  const patterns = readPatterns(outline["pre_tokenizer"]);
  const literals = readLiterals(outline["added_tokens"] ?? []);
  if (!leavesSettledAlone(outline["normalizer"]) || !isPlainBpe(outline["model"])) return undefined;
  if (patterns === undefined || literals === undefined) return undefined;
  return (text) => {
    if (!isSettled(text)) return undefined;
    const pieces: string[] = [];
    // The odd parts are the literals.
    for (const [index, part] of (literals === null ? [text] : text.split(literals)).entries()) {
      if (index % 2 === 1) pieces.push(part);
      else if (part !== "") splitPart(part, patterns, pieces);
    }
    return pieces;
  };
}

function splitPart(part: string, patterns: readonly RegExp[], pieces: string[]): void {
  const [first, ...others] = patterns;
  if (first === undefined) {
    pieces.push(part);
    return;
  }
  const found = part.match(first) ?? [];
  const isCovered = found.reduce((length, { length: more }) => length + more, 0) === part.length;
  const cut = isCovered ? found : isolate(part, first);
  if (others.length === 0) for (const piece of cut) pieces.push(piece);
  else for (const piece of cut) splitPart(piece, others, pieces);
}

/** The matches, and what lies between them. */
function isolate(part: string, pattern: RegExp): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { 0: match, index } of part.matchAll(pattern)) {
    pieces.push(part.slice(from, index), match);
    from = index + match.length;
  }
  pieces.push(part.slice(from));
  return pieces.filter((piece) => piece !== "");
}

function leavesSettledAlone(normalizer: unknown): boolean {
  return normalizer === null || normalizer === undefined || typeOf(normalizer) === "NFC";
}

/** Nothing random, and nothing that marks where a piece begins or ends. */
function isPlainBpe(model: unknown): boolean {
  const {
    dropout,
    continuing_subword_prefix: prefix,
    end_of_word_suffix: suffix,
  } = asObject(model);
  return typeOf(model) === "BPE" && !dropout && !prefix && !suffix;
}

/** The patterns that cut one after the other, before the bytes are spelled. */
function readPatterns(preTokenizer: unknown): readonly RegExp[] | undefined {
  const { pretokenizers } = asObject(preTokenizer);
  const steps = Array.isArray(pretokenizers) ? (pretokenizers as unknown[]) : [preTokenizer];
  const last = asObject(steps.at(-1));
  if (last["type"] !== "ByteLevel" || last["add_prefix_space"] !== false) return undefined;
  const patterns = steps.slice(0, -1).map((step) => {
    const { type, pattern, behavior, invert } = asObject(step);
    const isCut = type === "Split" && behavior === "Isolated" && invert === false;
    return isCut ? toJavascript(asObject(pattern)["Regex"]) : undefined;
  });
  if (last["use_regex"] !== false) patterns.push(toJavascript(byteLevelPattern));
  return patterns.every((pattern) => pattern !== undefined) ? patterns : undefined;
}

/** **Source:** huggingface/tokenizers, `tokenizers/src/pre_tokenizers/byte_level.rs`. */
const byteLevelPattern = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

const foldedContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const spelledContractions = "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])";

/** The pattern where it means the same for settled characters. */
function toJavascript(pattern: unknown): RegExp | undefined {
  if (typeof pattern !== "string") return undefined;
  const spelled = pattern.replaceAll(foldedContractions, spelledContractions);
  if (/\(\?(?![:!])/.test(spelled)) return undefined;
  return new RegExp(spelled, "gu");
}

/**
 * The pattern of the added tokens, captured; `null` where there are none. Tokens that take the space
 * beside them along, stand for whole words only or are looked for in normalised text are another matter.
 */
function readLiterals(entries: unknown): RegExp | null | undefined {
  if (!Array.isArray(entries)) return undefined;
  if (entries.length === 0) return null;
  const contents: string[] = [];
  for (const entry of entries as unknown[]) {
    const { content, single_word: word, lstrip, rstrip, normalized } = asObject(entry);
    if (typeof content !== "string" || content === "") return undefined;
    if (word !== false || lstrip !== false || rstrip !== false || normalized !== false) {
      return undefined;
    }
    contents.push(content);
  }
  const longestFirst = contents.toSorted((left, right) => right.length - left.length);
  const escaped = longestFirst.map((content) => content.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(`(${escaped.join("|")})`, "u");
}

function typeOf(part: unknown): unknown {
  return asObject(part)["type"];
}

function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

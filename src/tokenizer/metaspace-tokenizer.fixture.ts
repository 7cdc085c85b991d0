import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { LoadTokenCodecOptions } from "./load-codec.ts";
import { loadTokenCodec } from "./load-codec.ts";
import type { TokenCodec } from "./codec.ts";

const characters = [
  "▁",
  "\n",
  ...Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at)),
];
const ordinary = ["<pad>", ...characters, "▁▁", "▁▁▁", "\n\n", "no"];
const specialTokens = ["<start_of_turn>", "<end_of_turn>"];
const otherTokens = ["<b>", "</b>", "<td>", "</td>"];
const vocabulary = [...ordinary, ...specialTokens, ...otherTokens];

/** Returns the id of a token text of the fixture. */
export function idOfToken(tokenText: string): number {
  return vocabulary.indexOf(tokenText);
}

function addedToken(content: string) {
  return {
    id: idOfToken(content),
    content,
    special: specialTokens.includes(content),
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  };
}

/**
 * A small tokenizer of Gemma's kind, with `▁` for spaces. Its added tokens contain tags, and also
 * runs of white space and a digit, which the model produces from any text.
 */
export const metaspaceTokenizer = {
  version: "1.0",
  truncation: null,
  padding: null,
  pre_tokenizer: null,
  post_processor: null,
  added_tokens: ["0", "▁▁", "▁▁▁", "\n\n", ...specialTokens, ...otherTokens].map(addedToken),
  normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" },
  decoder: {
    type: "Sequence",
    decoders: [{ type: "Replace", pattern: { String: "▁" }, content: " " }, { type: "Fuse" }],
  },
  model: {
    type: "BPE",
    dropout: null,
    unk_token: "<pad>",
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    vocab: Object.fromEntries(vocabulary.map((tokenText, id) => [tokenText, id])),
    merges: [
      ["▁", "▁"],
      ["▁▁", "▁"],
      ["\n", "\n"],
      ["n", "o"],
    ],
  },
};

/** The same tokenizer with a word among the added tokens that the merges also produce. */
export const wordAmongAdded = {
  ...metaspaceTokenizer,
  added_tokens: [...metaspaceTokenizer.added_tokens, addedToken("no")],
};

/** The tokens for single bytes in a vocabulary with byte fallback. */
export const byteTokens: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const digits = byte.toString(16).toUpperCase().padStart(2, "0");
  return `<0x${digits}>`;
});

// The conversion of spaces in such tokenizers.
export const fromSpaces = { type: "Replace", pattern: { String: " " }, content: "▁" };
export const toSpaces = { type: "Replace", pattern: { String: "▁" }, content: " " };

/** The steps of Llama 2: a space is put before each text, and removed from the decoded text. */
export const llama2Steps = {
  normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, fromSpaces] },
  decoder: {
    type: "Sequence",
    decoders: [
      toSpaces,
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
};

const fallbackVocabulary = [
  "<unk>",
  ...byteTokens,
  ...characters.filter((character) => character !== "\n"),
  "é",
  "東",
];

/**
 * A small tokenizer of Llama 2's kind. A space is put before each text and removed from the decoded
 * text. Characters outside the vocabulary, such as the line feed, become bytes.
 */
export const byteFallbackTokenizer = {
  ...metaspaceTokenizer,
  added_tokens: [],
  ...llama2Steps,
  model: {
    ...metaspaceTokenizer.model,
    unk_token: "<unk>",
    byte_fallback: true,
    merges: [],
    vocab: Object.fromEntries(fallbackVocabulary.map((tokenText, id) => [tokenText, id])),
  },
};

/** Returns the number of ids of a character with `byteFallbackTokenizer`. */
export function countFallbackIds(character: string): number {
  const isKnown = character === " " || fallbackVocabulary.includes(character);
  return isKnown ? 1 : Buffer.byteLength(character);
}

const scoredPieces: readonly (readonly [tokenText: string, score: number])[] = [
  ["<unk>", 0],
  ["</s>", 0],
  ...[..."▁<>/abknsu"].map((character) => [character, -4] as const),
  ["▁▁", -4],
];

/** Returns the id of a token text of `scoredTokenizer`. */
export function idOfScored(tokenText: string): number {
  return scoredPieces.findIndex(([piece]) => piece === tokenText);
}

const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "never", split: false };

/**
 * A small tokenizer that selects pieces by score, as SentencePiece does. Its added tokens include
 * two spaces, and the token for unknown characters.
 */
export const scoredTokenizer = {
  ...metaspaceTokenizer,
  added_tokens: ["<unk>", "</s>", "▁▁"].map((content) => ({
    id: idOfScored(content),
    content,
    special: content !== "▁▁",
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  })),
  normalizer: null,
  pre_tokenizer: metaspace,
  decoder: metaspace,
  model: { type: "Unigram", unk_id: 0, byte_fallback: false, vocab: scoredPieces },
};

/** Loads a tokenizer's document from a temporary folder. */
export async function codecOfDocument(
  document: unknown,
  options: LoadTokenCodecOptions = {},
): Promise<TokenCodec> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-metaspace-"));
  try {
    await writeFile(path.join(folder, "tokenizer.json"), JSON.stringify(document));
    return await loadTokenCodec(folder, options);
  } finally {
    await rm(folder, { recursive: true });
  }
}

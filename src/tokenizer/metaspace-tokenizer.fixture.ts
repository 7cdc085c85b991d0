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

/** The id of a spelling of the fixture. */
export function idOfSpelling(spelling: string): number {
  return vocabulary.indexOf(spelling);
}

function addedToken(content: string) {
  return {
    id: idOfSpelling(content),
    content,
    special: specialTokens.includes(content),
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  };
}

/**
 * A small tokenizer of Gemma's kind: spaces are spelled `▁`, and among the added tokens are tags, and runs of white
 * space and a digit, which the model makes of any text as well.
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
    vocab: Object.fromEntries(vocabulary.map((spelling, id) => [spelling, id])),
    merges: [
      ["▁", "▁"],
      ["▁▁", "▁"],
      ["\n", "\n"],
      ["n", "o"],
    ],
  },
};

/** The same where the merges also make a word that is listed among the added tokens. */
export const wordAmongAdded = {
  ...metaspaceTokenizer,
  added_tokens: [...metaspaceTokenizer.added_tokens, addedToken("no")],
};

/** How a vocabulary that falls back on bytes spells each of them. */
export const spelledBytes: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const digits = byte.toString(16).toUpperCase().padStart(2, "0");
  return `<0x${digits}>`;
});

/** How such tokenizers spell spaces, and read them. */
export const fromSpaces = { type: "Replace", pattern: { String: " " }, content: "▁" };
export const toSpaces = { type: "Replace", pattern: { String: "▁" }, content: " " };

/** Llama 2's: a space is put before each text, and taken from the decoded one. */
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
  ...spelledBytes,
  ...characters.filter((character) => character !== "\n"),
  "é",
  "東",
];

/**
 * A small tokenizer of Llama 2's kind: a space is put before each text and taken from the decoded one, and characters
 * that it does not know, the end of a line among them, are spelled by their bytes.
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
    vocab: Object.fromEntries(fallbackVocabulary.map((spelling, id) => [spelling, id])),
  },
};

/** How many ids a character has with that tokenizer. */
export function countFallbackIds(character: string): number {
  const isKnown = character === " " || fallbackVocabulary.includes(character);
  return isKnown ? 1 : Buffer.byteLength(character);
}

const scoredPieces: readonly (readonly [spelling: string, score: number])[] = [
  ["<unk>", 0],
  ["</s>", 0],
  ...[..."▁<>/abknsu"].map((character) => [character, -4] as const),
  ["▁▁", -4],
];

/** The id of a spelling of the tokenizer that chooses pieces by score. */
export function idOfScored(spelling: string): number {
  return scoredPieces.findIndex(([piece]) => piece === spelling);
}

const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: "never", split: false };

/**
 * A small tokenizer that chooses pieces by score, as SentencePiece's do: among its added tokens are two spaces, and
 * what stands for characters that it does not know.
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

/** Loads a tokenizer's document from a folder that is gone afterwards. */
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

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { byteCharacters } from "./byte-pair/byte-level.ts";
import { isExactInJavascript } from "./javascript-kinds.ts";
import { fromSpaces, llama2Steps, byteTokens } from "./metaspace-tokenizer.fixture.ts";
import { modelFolder, modelNames } from "./real-tokenizers.fixture.ts";
import { readTokenizerFile, type TokenizerFile } from "./tokenizer-file.ts";

async function fileOf(document: object): Promise<TokenizerFile> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-kinds-"));
  try {
    await writeFile(path.join(folder, "tokenizer.json"), JSON.stringify(document));
    return await readTokenizerFile(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const bytes = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
const split = {
  type: "Split",
  pattern: { Regex: String.raw`\s+` },
  behavior: "Isolated",
  invert: false,
};
const end = {
  id: 256,
  content: "<|end|>",
  special: true,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
};
const ofBytes = {
  version: "1.0",
  truncation: null,
  padding: null,
  normalizer: null,
  post_processor: null,
  added_tokens: [end],
  pre_tokenizer: { type: "Sequence", pretokenizers: [split, bytes] },
  decoder: bytes,
  model: {
    type: "BPE",
    vocab: Object.fromEntries(byteCharacters.map((spelling, byte) => [spelling, byte])),
    merges: [] as string[],
  },
};

const ofSpaces = {
  ...ofBytes,
  added_tokens: [],
  ...llama2Steps,
  pre_tokenizer: null,
  model: {
    type: "BPE",
    unk_token: "<unk>",
    fuse_unk: true,
    byte_fallback: true,
    vocab: Object.fromEntries(
      ["<unk>", ...byteTokens, "▁", "a", "▁a"].map((spelling, id) => [spelling, id]),
    ),
    merges: ["▁ a"],
  },
};

const { "<0x09>": tabId, ...others } = ofSpaces.model.vocab;
const tabbed = { ...others, "\t": tabId };

describe("isExactInJavascript()", () => {
  test.each(modelNames)("accepts the kind of %s", async (name) => {
    expect(isExactInJavascript(await readTokenizerFile(modelFolder(name)))).toBe(true);
  });

  test.each([
    ["bytes", ofBytes],
    ["bytes, normalised", { ...ofBytes, normalizer: { type: "NFC" } }],
    ["bytes by GPT-2's pattern", { ...ofBytes, pre_tokenizer: { ...bytes, use_regex: true } }],
    ["spelled spaces", ofSpaces],
    [
      "spelled spaces with a byte that is a character, as Gemma 2",
      { ...ofSpaces, model: { ...ofSpaces.model, vocab: tabbed } },
    ],
    ["spelled spaces, as Gemma", { ...ofSpaces, normalizer: fromSpaces }],
  ])("accepts byte-pair models of %s", async (_what, document) => {
    expect(isExactInJavascript(await fileOf(document))).toBe(true);
  });

  test.each([
    ["a normaliser that differs", { ...ofBytes, normalizer: { type: "NFKC" } }],
    ["an added token that strips", { ...ofBytes, added_tokens: [{ ...end, rstrip: true }] }],
    ["a space before", { ...ofBytes, pre_tokenizer: { ...bytes, add_prefix_space: true } }],
    [
      "another cut",
      {
        ...ofBytes,
        pre_tokenizer: {
          type: "Sequence",
          pretokenizers: [{ type: "Digits", individual_digits: true }, bytes],
        },
      },
    ],
    ["an odd argument", { ...ofBytes, model: { ...ofBytes.model, dropout: 0.1 } }],
    ["scores", { ...ofBytes, model: { type: "Unigram", unk_id: 0, vocab: [["a", -1]] } }],
    [
      "bytes that are missing",
      { ...ofSpaces, model: { ...ofSpaces.model, vocab: { "<unk>": 0, "▁": 1, a: 2, "▁a": 3 } } },
    ],
    ["merges of what is missing", { ...ofSpaces, model: { ...ofSpaces.model, merges: ["▁ b"] } }],
    [
      "no bytes to fall back on",
      { ...ofSpaces, model: { ...ofSpaces.model, byte_fallback: false } },
    ],
    ["a Metaspace", { ...ofSpaces, pre_tokenizer: { type: "Metaspace", replacement: "▁" } }],
  ])("does not accept %s", async (_what, document) => {
    expect(isExactInJavascript(await fileOf(document))).toBe(false);
  });
});

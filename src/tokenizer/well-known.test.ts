import { describe, expect, test } from "vitest";
import {
  fromSpaces,
  llama2Steps,
  metaspaceTokenizer,
  toSpaces,
} from "./metaspace-tokenizer.fixture.ts";
import { modelFolder, modelNames } from "./real-tokenizers.fixture.ts";
import { readTokenizerFile, type TokenizerFile } from "./tokenizer-file.ts";
import { isWellKnown } from "./well-known.ts";

function fileOf(outline: object): TokenizerFile {
  return { outline: { model: { type: "BPE" }, ...outline } } as unknown as TokenizerFile;
}

const byteLevel = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: false,
};
const template = {
  type: "TemplateProcessing",
  single: [{ SpecialToken: { id: "<s>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
  pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
  special_tokens: { "<s>": { id: "<s>", ids: [1], tokens: ["<s>"] } },
};

const bertNormalizer = {
  type: "BertNormalizer",
  clean_text: true,
  handle_chinese_chars: true,
  strip_accents: null,
  lowercase: true,
};
const emptying = [
  { type: "Strip", strip_left: true, strip_right: true },
  { type: "StripAccents" },
  { type: "Nmt" },
];

describe("isWellKnown()", () => {
  test.each(modelNames)("accepts the tokenizer of %s", async (name) => {
    expect(isWellKnown(await readTokenizerFile(modelFolder(name)))).toBe(true);
  });

  test("accepts the fixture of Gemma's kind", () => {
    expect(isWellKnown(fileOf({ ...metaspaceTokenizer, model: { type: "BPE" } }))).toBe(true);
  });

  test.each([
    [
      "Llama 2",
      {
        ...llama2Steps,
        post_processor: template,
        model: {
          type: "BPE",
          dropout: null,
          unk_token: "<unk>",
          continuing_subword_prefix: null,
          end_of_word_suffix: null,
          fuse_unk: true,
          byte_fallback: true,
        },
      },
    ],
    [
      "Gemma 3",
      {
        normalizer: fromSpaces,
        pre_tokenizer: {
          type: "Split",
          pattern: { String: " " },
          behavior: "MergedWithPrevious",
          invert: false,
        },
        post_processor: template,
      },
    ],
    [
      "Mistral",
      {
        pre_tokenizer: {
          type: "Metaspace",
          replacement: "▁",
          prepend_scheme: "first",
          split: false,
        },
      },
    ],
    [
      "DeepSeek V3",
      {
        normalizer: { type: "Sequence", normalizers: [] },
        pre_tokenizer: {
          type: "Sequence",
          pretokenizers: [
            {
              type: "Split",
              pattern: { Regex: String.raw`\p{N}{1,3}` },
              behavior: "Isolated",
              invert: false,
            },
            byteLevel,
          ],
        },
        decoder: byteLevel,
        post_processor: { ...byteLevel, trim_offsets: false },
      },
    ],
    [
      "GPT-2, whose file says no type",
      {
        pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true },
        model: {
          dropout: null,
          unk_token: null,
          continuing_subword_prefix: "",
          end_of_word_suffix: "",
          fuse_unk: false,
        },
      },
    ],
    [
      "StarCoder",
      {
        pre_tokenizer: {
          type: "Sequence",
          pretokenizers: [{ type: "Digits", individual_digits: true }, byteLevel],
        },
      },
    ],
    [
      "Command R+, whose template has the flags of another component",
      {
        normalizer: { type: "NFC" },
        pre_tokenizer: {
          type: "Sequence",
          pretokenizers: [
            { type: "Digits", individual_digits: true },
            { ...byteLevel, use_regex: true },
          ],
        },
        post_processor: {
          add_prefix_space: true,
          trim_offsets: false,
          use_regex: true,
          ...template,
        },
        decoder: byteLevel,
      },
    ],
    [
      "a BERT",
      {
        added_tokens: [{ id: 0, content: "[CLS]", normalized: false }],
        normalizer: bertNormalizer,
        post_processor: { type: "BertProcessing", sep: ["[SEP]", 1], cls: ["[CLS]", 0] },
      },
    ],
    ["several", { normalizer: { type: "Sequence", normalizers: emptying } }],
    ["Claude", { normalizer: { type: "NFKC" }, decoder: byteLevel }],
    ["T5", { model: { type: "Unigram", unk_id: 2, byte_fallback: false } }],
  ])("accepts the components of %s", (_name, outline) => {
    expect(isWellKnown(fileOf(outline))).toBe(true);
  });

  test.each([
    { normalizer: { type: "Replace", pattern: { String: "" }, content: "x" } },
    { normalizer: { type: "Replace", pattern: { String: " " }, content: "" } },
    { normalizer: { type: "Replace", pattern: { String: " " }, content: "much longer" } },
    { normalizer: { type: "Replace", pattern: { Regex: "(a+)+$" }, content: "x" } },
    { normalizer: { type: "Replace", pattern: { String: "a", Regex: "(a+)+$" }, content: "x" } },
    { normalizer: { type: "Prepend", prepend: "" } },
    { normalizer: { type: "Precompiled", precompiled_charsmap: "" } },
    { normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "" }] } },
    { normalizer: { type: "NFC", more: 1 } },
    ...[bertNormalizer, ...emptying].map((normalizer) => ({
      normalizer,
      added_tokens: [{ id: 0, content: "\u0301", normalized: true }],
    })),
    { normalizer: { type: "NFC", more: "true" } },
    { normalizer: { type: "Sequence", more: true } },
    { normalizer: { type: "toString" } },
    { normalizer: [] },
    { pre_tokenizer: { type: "FixedLength", length: 0 } },
    { pre_tokenizer: { type: "FixedLength", length: 3 } },
    { pre_tokenizer: { type: "Sequence", pretokenizers: [{ type: "FixedLength", length: 0 }] } },
    {
      pre_tokenizer: {
        type: "Split",
        pattern: { String: "" },
        behavior: "Isolated",
        invert: false,
      },
    },
    { decoder: { type: "Strip", content: " ", start: 0, stop: 1 } },
    { decoder: { type: "Strip", content: " ", start: 0 } },
    {
      decoder: { type: "Sequence", decoders: [{ type: "Strip", content: "a", start: 1, stop: 2 }] },
    },
    { decoder: { ...toSpaces, pattern: { String: "" } } },
    { decoder: { type: "BPEDecoder", suffix: "" } },
    { decoder: { type: "CTC", pad_token: "a", word_delimiter_token: "", cleanup: true } },
    { post_processor: { ...template, single: [...template.single, ...template.single] } },
    { model: { type: "BPE", continuing_subword_prefix: "##" } },
    { model: { type: "BPE", end_of_word_suffix: "</w>" } },
    { model: { type: "BPE", dropout: 0.5 } },
    { model: { type: "WordPiece", continuing_subword_prefix: "" } },
    { model: { type: "BPE", more: 1 } },
  ])("does not accept %j", (outline) => {
    expect(isWellKnown(fileOf(outline))).toBe(false);
  });
});

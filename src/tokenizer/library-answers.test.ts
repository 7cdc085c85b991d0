import { describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import { byteCharacters } from "./byte-pair/byte-level.ts";
import { codecOfDocument } from "./metaspace-tokenizer.fixture.ts";

function addedToken(id: number, content: string) {
  return {
    id,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  };
}

const byteLevel = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: false,
};

const byteIds = Object.fromEntries(byteCharacters.map((spelling, byte) => [spelling, byte]));

function documentOf({ pattern = String.raw`\s+`, vocab = byteIds, added = [] as object[] } = {}) {
  const split = { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    normalizer: null,
    post_processor: null,
    added_tokens: added,
    pre_tokenizer: { type: "Sequence", pretokenizers: [split, byteLevel] },
    decoder: byteLevel,
    model: { type: "BPE", vocab, merges: [] },
  };
}

describe.each([
  ["in this process", String.raw`\s+`],
  ["in a process of its own", String.raw`\p{Han}+`],
])("the ids of a tokenizer that runs %s", (_where, pattern) => {
  test.each([
    [
      "the file's leave a gap",
      documentOf({ pattern, added: [addedToken(260, "<|a|>"), addedToken(262, "<|b|>")] }),
      ["<|a|>", "<|b|>"],
      [256, 257],
      263,
    ],
    [
      "two spellings share one",
      documentOf({ pattern, vocab: { ...byteIds, xyz: 5 }, added: [addedToken(256, "<|b|>")] }),
      ["<|b|>"],
      [257],
      258,
    ],
    [
      "an added token's is taken",
      documentOf({ pattern, added: [addedToken(5, "<|b|>")] }),
      ["<|b|>"],
      [256],
      257,
    ],
  ])("are those that it encodes to if %s", async (_what, document, contents, ids, size) => {
    const codec = await codecOfDocument(document);
    expect(await codec.encode(contents.join(""))).toEqual(ids);
    expect(codec.vocabularySize).toBe(size);
    expect(codec.addedTokens.map(({ id }) => id)).toEqual(ids);
    expect(contents.map((content) => codec.idOf(content))).toEqual(ids);
    expect(ids.map((id) => codec.tokenOf(id))).toEqual(contents);
    expect(await codec.decode([97, ...ids])).toBe(`a${contents.join("")}`);
    await codec.close?.();
  });
});

describe("a call that a library cannot answer", () => {
  const spelled = (model: object) => ({
    ...documentOf(),
    pre_tokenizer: null,
    decoder: null,
    model,
  });

  test.each([
    [
      "a scored vocabulary without an unknown piece",
      spelled({ type: "Unigram", unk_id: null, vocab: [["a", -1]] }),
      "Cannot use the tokenizer: Encountered an unknown token but `unk_id` is missing",
    ],
    [
      "an unknown piece that the vocabulary lacks",
      spelled({ type: "BPE", unk_token: "<nope>", vocab: { a: 0 }, merges: [] }),
      "Cannot use the tokenizer: Unk token `<nope>` not found in the vocabulary",
    ],
  ])("fails as an error of the tokenizer: %s", async (_what, document, message) => {
    const codec = await codecOfDocument(document);
    for (const how of ["encode", "encodePlain"] as const) {
      const problem = await codec[how]("é").catch((error: unknown) => error);
      expect(problem).toBeInstanceOf(RolloutError);
      expect(problem).toMatchObject({ code: "internal/tokenizer", message });
      expect((problem as RolloutError).cause).toBeInstanceOf(Error);
    }
    await codec.close?.();
  });
});

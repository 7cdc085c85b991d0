import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import * as library from "tokenizers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { modelFolder } from "./real-tokenizers.fixture.ts";
import { loadSharedModel } from "./shared-model.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "shared-model-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** Returns the document that the library would write. */
async function textOf(tokenizer: library.Tokenizer): Promise<string> {
  const file = path.join(scratch, "saved.json");
  tokenizer.save(file);
  return await readFile(file, "utf8");
}

async function documentOf(tokenizer: library.Tokenizer): Promise<object> {
  return JSON.parse(await textOf(tokenizer)) as object;
}

/**
 * Returns the models of a complete document and of its parts, which are `undefined` if they lack
 * something.
 */
async function loadBothWays(dir: string) {
  const shared = await loadSharedModel(library, await readTokenizerFile(dir));
  const complete = library.Tokenizer.fromFile(path.join(dir, "tokenizer.json"));
  complete.disableTruncation();
  complete.disablePadding();
  return { shared, complete };
}

describe("a real tokenizer's parts", () => {
  test.each(["qwen3", "qwen2_5"] as const)("%s are the same as the complete file", async (name) => {
    const { shared, complete } = await loadBothWays(modelFolder(name));
    const text = await textOf(complete);
    // The entries are too many to show a difference.
    expect((await textOf(shared!.full)) === text).toBe(true);
    const added = /(?<="added_tokens":\[){.*?}(?=\],"normalizer":)/;
    expect(added.test(text)).toBe(true);
    expect((await textOf(shared!.plain)) === text.replace(added, "")).toBe(true);
  });

  test("llama3, which ignores merges, is read as one file", async () => {
    const file = await readTokenizerFile(modelFolder("llama3"));
    expect(await loadSharedModel(library, file)).toBeUndefined();
  });
});

const model = {
  type: "BPE",
  dropout: null,
  unk_token: "<unk>",
  continuing_subword_prefix: null,
  end_of_word_suffix: null,
  fuse_unk: true,
  byte_fallback: true,
  ignore_merges: false,
  vocab: { "<unk>": 0, a: 1, "\u00e9": 2, '"': 3, "\\": 4, ab: 6, b: 5, '"\\': 7, "\u00e9a": 8 },
  merges: [
    ["a", "b"],
    ['"', "\\"],
    ["\u00e9", "a"],
  ] as unknown,
};
const token = { id: 9, content: "<x>", special: true };
const flags = { single_word: false, lstrip: false, rstrip: true, normalized: false };
const document = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [
    { ...token, ...flags },
    { ...flags, id: 1, content: "a", special: false, normalized: true, single_word: true },
  ] as readonly unknown[],
  normalizer: { type: "NFC" },
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  },
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: model as Readonly<Record<string, unknown>>,
};

async function write(changed: Partial<typeof document>, escape = false): Promise<string> {
  const dir = await mkdtemp(path.join(scratch, "model-"));
  const text = JSON.stringify({ ...document, ...changed }, null, escape ? 2 : 0);
  const ascii = text.replaceAll(/[^ -~\n]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  await writeFile(path.join(dir, "tokenizer.json"), escape ? ascii : text);
  return dir;
}

describe("a file's parts", () => {
  test.each([
    ["with merges as lists", {}],
    ["with merges as texts", { model: { ...model, merges: ["a b", '" \\', "\u00e9 a"] } }],
    ["with no merges", { model: { ...model, merges: [] } }],
    ["with no added tokens", { added_tokens: [] }],
    ["that cuts and pads", { truncation: cut(), padding: pad() }],
    ["with few options", { model: { type: "BPE", vocab: model.vocab, merges: model.merges } }],
  ])("%s are the same as the complete file", async (_name, changed) => {
    for (const escape of [false, true]) {
      const { shared, complete } = await loadBothWays(await write(changed, escape));
      expect(await documentOf(shared!.full)).toEqual(await documentOf(complete));
      const text = '<x> ab"\\ \u00e9a a <x>z';
      const ids = async (one: library.Tokenizer) =>
        (await one.encode(text, null, { addSpecialTokens: false })).getIds();
      expect(await ids(shared!.full)).toEqual(await ids(complete));
      expect(await ids(shared!.plain)).not.toContain(token.id);
    }
  });

  test.each([
    ["a spelling with a space", [["a ", "b"]]],
    ["a spelling with the end of a line", [["a\n", "b"]]],
    ["a spelling with a carriage return", [["a", "\rb"]]],
    ["a first spelling that reads as a comment", [["#version", "b"]]],
    ["three spellings", [["a", "b", "a"]]],
    ["one spelling", [["a"]]],
    ["a list within a list", [[["a", "b"]]]],
    ["a text of one spelling", ["ab"]],
    ["a text of three", ["a b a"]],
    ["an empty spelling", [["", "b"]]],
    ["a number", [[1, 2]]],
    ["no list", { a: "b" }],
  ])("with %s are left to the complete file", async (_name, merges) => {
    const file = await readTokenizerFile(await write({ model: { ...model, merges } }));
    expect(await loadSharedModel(library, file)).toBeUndefined();
  });

  test.each([
    ["another kind of model", { model: { ...model, type: "Unigram" } }],
    ["dropout", { model: { ...model, dropout: 0.1 } }],
    ["an unknown option", { model: { ...model, sparkle: true } }],
    ["an id that is not a number", { model: { ...model, vocab: { ...model.vocab, c: null } } }],
    ["an id that is below zero", { model: { ...model, vocab: { ...model.vocab, c: -1 } } }],
    ["an id with a fraction", { model: { ...model, vocab: { ...model.vocab, c: 1.5 } } }],
    ["an added token that leaves something open", { added_tokens: [token] }],
  ])("with %s are left to the complete file", async (_name, changed) => {
    const file = await readTokenizerFile(await write(changed));
    expect(await loadSharedModel(library, file)).toBeUndefined();
  });

  test("leave no file", async () => {
    const dirs = [
      await write({}),
      await write({ model: { ...model, merges: [["a", "absent"]] } }),
    ] as const;
    // In a separate folder, because other tests write to the system's temporary folder at the same
    // time.
    const temporary = await mkdtemp(path.join(scratch, "tmp-"));
    vi.stubEnv("TMPDIR", temporary);
    try {
      expect(tmpdir()).toBe(temporary);
      await loadBothWays(dirs[0]);
      await loadBothWays(dirs[1]).catch(() => {});
    } finally {
      vi.unstubAllEnvs();
    }
    expect(await readdir(temporary)).toEqual([]);
  });
});

function cut() {
  return { direction: "Right", max_length: 1, strategy: "LongestFirst", stride: 0 } as never;
}

function pad() {
  return {
    strategy: { Fixed: 9 },
    direction: "Right",
    pad_to_multiple_of: null,
    pad_id: 0,
    pad_type_id: 0,
    pad_token: "<unk>",
  } as never;
}

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as native from "tokenizers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { spreadBits } from "../../values/hash-text.ts";
import { createBytePairCodec } from "./byte-pair-codec.ts";
import { byteCharacters } from "./byte-level.ts";
import type { TokenCodec } from "../codec.ts";
import { libraryTokenizer, modelFolder, modelNames } from "../real-tokenizers.fixture.ts";
import { readTokenizerFile } from "../tokenizer-file.ts";

const shippedModel = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));

let drawn = 0;

function draw(limit: number): number {
  return spreadBits(++drawn) % limit;
}

/** Characters of all kinds: most texts contain some that no rule here cuts. */
function makeText(): string {
  const ranges = [0x7f, 0x250, 0x600, 0x3000, 0xd800, 0x1f700] as const;
  const chars = Array.from({ length: 1 + draw(40) }, () =>
    String.fromCodePoint(draw(4) === 0 ? 0x20 : draw(ranges[draw(ranges.length)] ?? 1)),
  );
  return chars.join("");
}

const texts = [
  ...Array.from({ length: 500 }, makeText),
  "<|im_start|>user\nHi<|im_end|><|im_end|>\n<|eot_id|>",
  // Pieces that are too long to merge at once, and texts that are too long to cut in this thread.
  `so ${"ab".repeat(400)} it is`,
  "The order #W0000000 isn't pending. ".repeat(1200),
  "注文はまだ届いていません。".repeat(3000),
];

describe.each([...modelNames, "storefront-2m"] as const)("%s", (name) => {
  const folder = name === "storefront-2m" ? shippedModel : modelFolder(name);
  let codec: TokenCodec;
  beforeAll(async () => {
    codec = (await createBytePairCodec(native, await readTokenizerFile(folder)))!;
  });
  afterAll(async () => {
    await codec.close?.();
  });

  test("every text has the ids that the library gives", async () => {
    const library = libraryTokenizer(folder);
    for (const text of texts) {
      const ids = (await library.encode(text, null, { addSpecialTokens: false })).getIds();
      expect(await codec.encode(text)).toEqual(ids);
      expect(await codec.decode(ids)).toBe(await library.decode(ids, false));
    }
  });

  test("every id has the library's token text, and every token text its id", async () => {
    const library = libraryTokenizer(folder);
    const wrong: number[] = [];
    for (let id = 0; id < codec.vocabularySize; id++) {
      const spelling = codec.tokenOf(id);
      const isAlike = spelling === library.idToToken(id);
      if (!isAlike || codec.idOf(spelling ?? "") !== library.tokenToId(spelling ?? "")) {
        wrong.push(id);
      }
    }
    expect(wrong).toEqual([]);
    expect(codec.tokenOf(codec.vocabularySize)).toBeUndefined();
  });
});

const flags = {
  special: true,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
};
const vocab = {
  ...Object.fromEntries(byteCharacters.map((spelling, byte) => [spelling, byte])),
  ab: 256,
  "<x>": 257,
};
const document = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: [
    { id: 257, content: "<x>", ...flags },
    { id: 258, content: "<y>", ...flags },
  ] as readonly object[],
  normalizer: null,
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  } as object | null,
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true } as
    | object
    | null,
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    vocab: vocab as object,
    merges: [["a", "b"]] as readonly unknown[],
  } as object,
};

/** A post-processor that returns a text with additions, or twice. */
function template(...parts: readonly string[]): object {
  const single = parts.map((part) => {
    return part === "$A"
      ? { Sequence: { id: "A", type_id: 0 } }
      : { SpecialToken: { id: part, type_id: 0 } };
  });
  const special = { id: "<x>", ids: [257], tokens: ["<x>"] };
  return { type: "TemplateProcessing", single, pair: single, special_tokens: { "<x>": special } };
}

function cut(): object {
  return { direction: "Right", max_length: 1, strategy: "LongestFirst", stride: 0 };
}

async function codecOf(changed: Partial<typeof document>): Promise<TokenCodec | undefined> {
  const folder = await mkdtemp(path.join(tmpdir(), "byte-pairs-"));
  try {
    const text = JSON.stringify({ ...document, ...changed });
    await writeFile(path.join(folder, "tokenizer.json"), text);
    return await createBytePairCodec(native, await readTokenizerFile(folder));
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe("a small model", () => {
  test("encodes texts and added tokens here", async () => {
    const codec = await codecOf({});
    expect(await codec?.encode("ab<x>ba<y>")).toEqual([256, 257, 0x62, 0x61, 258]);
    expect(await codec?.encodePlain("<y>ab")).toEqual([0x3c, 0x79, 0x3e, 256]);
    expect(codec?.idOf("<y>")).toBe(258);
    expect(codec?.idOf("ab")).toBe(256);
    await codec?.close?.();
    const gap = await codecOf({
      model: { ...document.model, vocab: { ...vocab, "<x>": 300 } },
      added_tokens: [{ id: 300, content: "<x>", ...flags }],
    });
    expect(await gap?.encode("ab<x>")).toEqual([256, 300]);
    const between = await codecOf({
      post_processor: template("<x>", "$A") as never,
      truncation: cut() as never,
      added_tokens: [{ id: 258, content: "<Y>", ...flags, normalized: true }],
    });
    expect(await between?.encode("ab<Y>".repeat(9000))).toEqual(
      Array.from({ length: 9000 }, () => [256, 258]).flat(),
    );
    expect(await between?.decode([256, -1, 0.5, 258, 1e9])).toBe("ab<Y>");
    await between?.close?.();
  });

  test("is refused if the library refuses its other parts", async () => {
    await expect(codecOf({ normalizer: { type: "Nope" } as never })).rejects.toThrow();
  });

  const without = (name: string): object =>
    Object.fromEntries(Object.entries(vocab).filter(([spelling]) => spelling !== name));
  test.each([
    ["chooses by score", { model: { ...document.model, type: "Unigram" } }],
    ["drops merges by chance", { model: { ...document.model, dropout: 0.1 } }],
    ["marks beginnings", { model: { ...document.model, continuing_subword_prefix: "##" } }],
    ["marks ends", { model: { ...document.model, end_of_word_suffix: "</w>" } }],
    ["has an unknown option", { model: { ...document.model, sparkle: true } }],
    ["lacks a byte", { model: { ...document.model, vocab: without("c") } }],
    ["merges what it does not hold", { model: { ...document.model, merges: [["a", "c"]] } }],
    ["works on characters", { pre_tokenizer: null }],
    ["has another decoder", { decoder: null }],
    [
      "leaves a gap before an added token",
      { added_tokens: [{ id: 300, content: "<y>", ...flags }] },
    ],
    [
      "gives an added token another number",
      { added_tokens: [{ id: 258, content: "<x>", ...flags }] },
    ],
    ["adds the spelling of a byte", { added_tokens: [{ id: 0x61, content: "a", ...flags }] }],
    ["leaves something of a token open", { added_tokens: [{ id: 258, content: "<y>" }] }],
    ["adds half a character", { added_tokens: [{ id: 258, content: "\ud800", ...flags }] }],
    ["names no tokens", { added_tokens: null as never }],
    [
      "decodes a token as it is normalised",
      {
        normalizer: { type: "Lowercase" } as never,
        added_tokens: [{ id: 258, content: "<Y>", ...flags, normalized: true }],
      },
    ],
    [
      "numbers tokens after a gap",
      {
        model: { ...document.model, vocab: { ...vocab, "<x>": 300 } },
        added_tokens: [
          { id: 300, content: "<x>", ...flags },
          { id: 301, content: "<y>", ...flags },
        ],
      },
    ],
    ["names an unknown token by number", { model: { ...document.model, unk_token: 5 } }],
    ["fuses by a word", { model: { ...document.model, fuse_unk: "yes" } }],
    ["falls back by number", { model: { ...document.model, byte_fallback: 1 } }],
    ["gives a text twice", { post_processor: template("$A", "$A") as never }],
  ])("that %s is left to the library", async (_what, changed) => {
    expect(await codecOf(changed)).toBeUndefined();
  });
});

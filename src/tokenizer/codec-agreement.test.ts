import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modelFolder, modelNames } from "./real-tokenizers.fixture.ts";
import type { TokenCodec } from "./codec.ts";
import { loadTokenCodec } from "./load-codec.ts";

const textCount = 2000;

/** Returns the same numbers in [0, 1) in every run. Source: Tommy Ettinger's mulberry32. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pieces: readonly string[] = [
  "Hello world",
  "The order #W0000000 isn't pending.",
  "don't",
  "I'LL",
  "naïve café",
  "e\u0301a\u0308\u0323",
  "你好，世界",
  "東京タワー",
  "안녕하세요",
  "Привет",
  "مرحبا بالعالم",
  "नमस्ते",
  "สวัสดี",
  "שלום",
  "Ελλάδα",
  "😀",
  "👩‍👩‍👧",
  "🇺🇸🇩🇪",
  "👍🏽",
  "✅",
  "\u{1d518}\u{1d52b}",
  "ﬁ",
  "Å",
  "\uac00\u11a8",
  "½²",
  "Ⅻ",
  " ",
  "  ",
  "\t",
  "\n",
  "\n\n",
  "\r\n",
  "   \n  ",
  "\u00a0",
  "\u2003",
  "\u3000",
  "\u200b",
  "\ufeff",
  "\u0085",
  "\u2028",
  '{"name": "get_order", "arguments": {"n": 2.0, "note": "caf\\u00e9"}}',
  '"}}',
  "[[1, 2], []]",
  "</think>",
  "<tool_call>\n",
  "<|im_end|>",
  "<|im_start|>user\n",
  "<|endoftext|>",
  "<|eot_id|>",
  "<|begin_of_text|>",
  "<|im_",
  "end|>",
  "<|",
  "|>",
  "1234567890",
  "3.14159",
  "-0.0",
  "1e-7",
  "0x1F",
  "٣٤",
  "if (a < b) { return c[0]; }",
  "    def f(self):\n        pass\n",
  "https://example.org/a?b=c&d=%20",
  "snake_case camelCase PascalCase",
  "!!!???...",
  "—–…“”",
  "\\n\\t\\\\",
  "\u0000\u0001\u007f",
  "\ue000\uf8ff",
  "\ufffd",
  "a".repeat(40),
  "-".repeat(33),
  "A\u030a",
  "ǆ",
  "ß",
  "İ",
];

function makeTexts(random: () => number): readonly string[] {
  const pick = () => pieces[Math.floor(random() * pieces.length)] as string;
  return Array.from({ length: textCount }, () =>
    Array.from({ length: 1 + Math.floor(random() * 8) }, pick).join(random() < 0.5 ? "" : " "),
  );
}

describe.each(modelNames)("%s", (name) => {
  let native: TokenCodec;
  let javascript: TokenCodec;
  const random = createRandom(20261121);
  const texts = makeTexts(random);

  beforeAll(async () => {
    native = await loadTokenCodec(modelFolder(name), { backend: "native" });
    javascript = await loadTokenCodec(modelFolder(name), { backend: "javascript" });
  });

  afterAll(async () => {
    await javascript.close?.();
  });

  async function encodeAll(codec: TokenCodec, how: "encode" | "encodePlain") {
    const all: number[][] = [];
    for (const text of texts) all.push(await codec[how](text));
    return all;
  }

  const byNative = new Map<string, ReturnType<typeof encodeAll>>();
  /** The native codec's ids; several tests compare with them. */
  async function encodeNatively(how: "encode" | "encodePlain") {
    const ids = byNative.get(how) ?? encodeAll(native, how);
    byNative.set(how, ids);
    return await ids;
  }

  test.each(["encode", "encodePlain"] as const)(
    "the native and the JavaScript codec give the same ids: %s()",
    async (how) => {
      const expected = await encodeNatively(how);
      const actual = await encodeAll(javascript, how);
      const differing = texts.filter(
        (_text, index) => String(actual[index]) !== String(expected[index]),
      );
      expect(differing).toEqual([]);
    },
  );

  test("`encodePlain()` never returns an added token's id, and differs only if the text contains one", async () => {
    const added = new Set(native.addedTokens.map(({ id }) => id));
    const full = await encodeNatively("encode");
    const plain = await encodeNatively("encodePlain");
    expect(plain.flat().filter((id) => added.has(id))).toEqual([]);
    const differing = texts.filter((_text, index) => String(full[index]) !== String(plain[index]));
    const withAdded = texts.filter((_text, index) => full[index]?.some((id) => added.has(id)));
    expect(differing).toEqual(withAdded);
    expect(withAdded.length).toBeGreaterThan(textCount / 20);
  });

  test("every added token's literal is one id, or plain text", async () => {
    for (const { content, id } of native.addedTokens) {
      expect(await native.encode(content)).toEqual([id]);
      expect(await javascript.encode(content)).toEqual([id]);
      expect((await native.encodePlain(content)).length).toBeGreaterThan(1);
      expect(native.idOf(content)).toBe(id);
      expect(native.tokenOf(id)).toBe(content);
    }
  });

  test("composed text is restored from its ids", async () => {
    for (const text of texts.slice(0, 500).map((text) => text.normalize("NFC"))) {
      expect(await native.decode(await native.encode(text))).toBe(text);
      expect(await native.decode(await native.encodePlain(text))).toBe(text);
    }
  });

  test("both codecs decode any ids alike, including incomplete characters", async () => {
    for (let round = 0; round < 200; round++) {
      const ids = Array.from({ length: 1 + Math.floor(random() * 12) }, () =>
        Math.floor(random() * (native.vocabularySize + 50)),
      );
      expect(await javascript.decode(ids)).toBe(await native.decode(ids));
    }
  });

  test("both codecs have the same ids and token texts", () => {
    expect(javascript.vocabularySize).toBe(native.vocabularySize);
    expect(javascript.addedTokens).toEqual(native.addedTokens);
    expect(native.tokenOf(native.vocabularySize)).toBeUndefined();
    expect(native.tokenOf(native.vocabularySize - 1)).toBeDefined();
    expect(native.idOf("no such spelling")).toBeUndefined();
  });

  test("an empty text has no ids, and no ids decode to an empty text", async () => {
    for (const codec of [native, javascript]) {
      expect(await codec.encode("")).toEqual([]);
      expect(await codec.encodePlain("")).toEqual([]);
      expect(await codec.decode([])).toBe("");
    }
  });

  test("a lone surrogate becomes U+FFFD", async () => {
    for (const codec of [native, javascript]) {
      expect(await codec.decode(await codec.encode("a\ud800b\udc00"))).toBe("a\ufffdb\ufffd");
    }
  });
});

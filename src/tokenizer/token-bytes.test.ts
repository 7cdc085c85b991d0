import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { AddedToken } from "./codec.ts";
import { loadTokenCodec } from "./load-codec.ts";
import { tokenBytes } from "./token-bytes.ts";

const modelFolder = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

test.each(["native", "javascript"] as const)(
  "tokenBytes() returns the bytes of characters of several tokens (%s)",
  async (backend) => {
    const codec = await loadTokenCodec(modelFolder, { backend });
    try {
      const text = "né 😀 日本\n<|im_end|>x";
      const ids = await codec.encode(text);
      const pieces = await tokenBytes(codec, ids);
      expect(pieces).toHaveLength(ids.length);
      expect(Buffer.concat(pieces).toString()).toBe(text);
      expect(pieces.some((piece) => Buffer.from(piece).toString().includes("\uFFFD"))).toBe(true);
    } finally {
      await codec.close?.();
    }
  },
);

const end: AddedToken = { id: 99, content: "</s>", special: true };

/** Returns the bytes of ids of a vocabulary with this decoded text. */
async function bytesOf(spellings: readonly string[], ids: readonly number[], text: string) {
  const codec = {
    tokenOf: (id: number) => spellings[id],
    decode: async (some: readonly number[]) => (some.length === ids.length ? text : `<${some[0]}>`),
    addedTokens: [end],
  };
  return (await tokenBytes(codec, ids)).map((piece) => Buffer.from(piece).toString("hex"));
}

test("tokenBytes() reads single bytes and spaces as SentencePiece writes them", async () => {
  const spellings = ["▁Hi", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0x0A>", "▁a"];
  expect(await bytesOf(spellings, [0, 1, 2, 3, 4, 5, 6, 7, 99], "Hi 😀\n a</s>")).toEqual([
    "4869",
    "20",
    "f0",
    "9f",
    "98",
    "80",
    "0a",
    "2061",
    "3c2f733e",
  ]);
  // After other text, the space belongs to the text.
  expect(await bytesOf(spellings, [7, 0], " a Hi")).toEqual(["2061", "204869"]);
});

test("tokenBytes() returns the text of each id if the token texts do not form the text", async () => {
  expect(await bytesOf(["##a", "b"], [0, 1], "ab")).toEqual(["3c303e", "3c313e"]);
});

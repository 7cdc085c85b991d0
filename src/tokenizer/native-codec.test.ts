import { beforeAll, describe, expect, test } from "vitest";
import { modelFolder } from "./real-tokenizers.fixture.ts";
import type { TokenCodec } from "./codec.ts";
import { loadTokenCodec } from "./load-codec.ts";

/** Ids from Qwen3's tokenizer. Encoding replaces a sampled split of the same text by them. */
const encodings: readonly (readonly [text: string, ids: readonly number[]])[] = [
  [" cancelled", [25681]],
  ["\n\n", [271]],
  ["\n", [198]],
  ['"}}', [30975]],
  ["Hello", [9707]],
  ["assistant\n", [77091, 198]],
  ["<tool_call>", [151657]],
  ["</think>", [151668]],
  ["<|im_start|>assistant\n\nHello", [151644, 77091, 271, 9707]],
  ["cafe\u0301", [924, 58858]],
  ["<|im_end|>\n", [151645, 198]],
];

describe("the tokenizer of Qwen3", () => {
  let codec: TokenCodec;

  beforeAll(async () => {
    codec = await loadTokenCodec(modelFolder("qwen3"));
  });

  test("is loaded natively", () => {
    expect(codec.backend).toBe("native");
    expect(codec.vocabularySize).toBe(151_669);
    expect(codec.addedTokens).toHaveLength(26);
  });

  test.each(encodings)("encodes %j", async (text, ids) => {
    expect(await codec.encode(text)).toEqual(ids);
  });

  test("decodes splits that encoding would not produce", async () => {
    expect(await codec.decode([9121, 832])).toBe(" cancelled");
    expect(await codec.decode([198, 198])).toBe("\n\n");
    expect(await codec.decode([9207, 92])).toBe('"}}');
    expect(await codec.decode([145233, 378])).toBe("👩\ufffd");
  });

  test("distinguishes control tokens from markup", () => {
    const special = new Map(codec.addedTokens.map((token) => [token.content, token.special]));
    expect(special.get("<|im_end|>")).toBe(true);
    expect(special.get("<tool_call>")).toBe(false);
    expect(codec.idOf("Ġcancelled")).toBe(25681);
    expect(codec.tokenOf(25681)).toBe("Ġcancelled");
  });
});

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { modelCodec, modelNames } from "../tokenizer/real-tokenizers.fixture.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";
import { createControlTokenGuard, type ControlTokenGuard } from "./guard/control-token-guard.ts";
import type { PromptEncoder } from "./prompt-encoder.ts";
import { createPromptEncoder } from "./prompt-encoder.ts";

const stops = { qwen3: "<|im_end|>", qwen2_5: "<|im_end|>", llama3: "<|eot_id|>" } as const;

/** Text that tempts a tokenizer to merge: spaces, line breaks, words, marks, other control tokens. */
const temptingText = fc
  .array(
    fc.oneof(
      fc.constantFrom(" ", "\n", "\n\n", "\t", "a", " the", "'s", "1", "123", "}", '"}', "<", "|>"),
      fc.constantFrom("é", "e\u0301", "你好", "😀", "\u0085", "\u00a0", "<|im_start|>", "<think>"),
      fc.string({ unit: "binary", maxLength: 6 }),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(""));

function encoderOf(codec: TokenCodec, anchors: readonly string[]): PromptEncoder {
  const guard = createControlTokenGuard({
    codec,
    policy: "neutralise",
    guardSystem: false,
    surroundings: [],
  });
  return createPromptEncoder(guard, anchors);
}

test("a cached prefix does not keep the rest of the prompt in memory", async () => {
  const guard = { encode: async () => [1] } as unknown as ControlTokenGuard;
  const collect = (): number => {
    setFlagsFromString("--expose-gc");
    (runInNewContext("gc") as () => void)();
    return process.memoryUsage().heapUsed;
  };
  const encode = createPromptEncoder(guard, ["<|end|>"]);
  const before = collect();
  for (let count = 0; count < 32; count++) {
    await encode(
      `${count % 16} You are a clerk of the shop.<|end|>${"x".repeat(1_000_000)}`,
      undefined,
    );
  }
  expect(collect() - before).toBeLessThan(4_000_000);
});

describe.each(modelNames)("prompt encoder on the tokenizer of %s", (name) => {
  let codec: TokenCodec;
  beforeAll(async () => {
    codec = await modelCodec(name);
  });

  test("cutting after a control token is exact for 400 pairs of texts", async () => {
    const stop = stops[name];
    const encode = encoderOf(codec, [stop]);
    await fc.assert(
      fc.asyncProperty(temptingText, temptingText, async (before, after) => {
        const text = before + stop + after;
        expect(await encode(text, undefined)).toEqual(await codec.encode(text));
      }),
      { numRuns: 400 },
    );
  });
});

describe("prompt encoder", () => {
  /** A codec that records the texts to encode. */
  function recordingCodec(): { codec: TokenCodec; asked: string[] } {
    const asked: string[] = [];
    const encode = async (text: string): Promise<number[]> => {
      asked.push(text);
      return Array.from(text, (character) => character.codePointAt(0) ?? 0);
    };
    const codec: TokenCodec = {
      backend: "recording",
      vocabularySize: 0x11_0000,
      addedTokens: [{ id: 0x7c, content: "|", special: true }],
      encode,
      encodePlain: encode,
      decode: async (ids) => String.fromCodePoint(...ids),
      idOf: (literal) => literal.codePointAt(0),
      tokenOf: (id) => String.fromCodePoint(id),
    };
    return { codec, asked };
  }

  test("encodes the common start of prompts once, also for concurrent prompts", async () => {
    const { codec, asked } = recordingCodec();
    const encode = encoderOf(codec, ["|"]);
    await Promise.all([encode("system|one", undefined), encode("system|two", undefined)]);
    await encode("system|three", undefined);
    expect(asked).toEqual(["system|", "|one", "|two", "|three"]);
  });

  test("forgets the heads that were not used for longest", async () => {
    const { codec, asked } = recordingCodec();
    const encode = encoderOf(codec, ["|"]);
    for (let index = 0; index < 16; index++) await encode(`${index}|`, undefined);
    await encode("0|", undefined);
    await encode("new|", undefined);
    asked.length = 0;
    await encode("0|", undefined);
    await encode("1|", undefined);
    expect(asked).toEqual(["|", "1|", "|"]);
  });

  test("asks again for a head that could not be encoded", async () => {
    let failures = 1;
    const guard = {
      async encode(text: string) {
        if (text === "system|" && failures-- > 0) throw new Error("the tokenizer is gone");
        return Array.from(text, (character) => character.charCodeAt(0));
      },
    } as unknown as ControlTokenGuard;
    const encode = createPromptEncoder(guard, ["|"]);
    await expect(encode("system|one", undefined)).rejects.toThrow("the tokenizer is gone");
    expect(String.fromCharCode(...(await encode("system|two", undefined)))).toBe("system|two");
  });

  test("changes to a prompt's ids do not reach the cached prefix", async () => {
    const guard = { encode: (text: string) => [text.length, 1] } as unknown as ControlTokenGuard;
    const encode = createPromptEncoder(guard, ["|"]);
    const first = await encode("system|one", undefined);
    first.length = 0;
    expect(await encode("system|two", undefined)).toEqual([7, 1, 1]);
  });

  test("encodes text without a control token unchanged", async () => {
    const { codec, asked } = recordingCodec();
    await encoderOf(codec, ["|"])("text", undefined);
    await encoderOf(codec, [])("a|b", undefined);
    expect(asked).toEqual(["text", "a|b"]);
  });
});

import { describe, expect, test } from "vitest";
import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import { assembleRenderer } from "../assemble-renderer.ts";
import type { Renderer } from "../renderer.ts";
import { bindTemplate } from "../bound-template.ts";
import { sampleTemplates } from "../sample-templates.fixture.ts";
import { splitSealed, unseal } from "../guard/seal.ts";

/** Knows one control token, and spells all else by a single id at once. */
const codec: TokenCodec = {
  backend: "test",
  vocabularySize: 2,
  addedTokens: [{ id: 1, content: "<|im_end|>", special: true }],
  encode: (text) => Promise.resolve(text.startsWith("<|im_end|>") ? [1] : [0]),
  encodePlain: () => Promise.resolve([0]),
  decode: () => Promise.resolve(""),
  idOf: () => undefined,
  tokenOf: () => undefined,
};

async function assemble(): Promise<Renderer> {
  return await assembleRenderer({
    template: bindTemplate(compileChatTemplate(sampleTemplates.clearing), new Map(), new Date(0)),
    codec,
    source: "test",
    endIds: [1],
    historyPolicy: "keep",
    guardPolicy: "neutralise",
    guardSystem: false,
  });
}

test("a delta with a short base does not convert the history", async () => {
  const renderer = await assemble();
  expect(renderer.card.deltaBase).toBe("short");
  const delta = await renderer.delta({
    get history(): never {
      throw new Error("the history is not needed");
    },
    assistant: { role: "assistant", content: "" },
    tools: [],
    lastSampledId: 1,
    environment: [{ role: "user", content: "Hi" }],
  });
  expect(delta.text).toContain("Hi");
});

describe("a delta with an answer of millions of characters", () => {
  test("lets the event loop go round in between", async () => {
    const renderer = await assemble();
    const { rounds } = await countRounds(
      renderer.delta({
        history: [],
        assistant: { role: "assistant", content: "" },
        environment: [{ role: "user", content: "a <|im_end|> b ".repeat(200_000) }],
        tools: [],
        lastSampledId: 1,
      }),
    );
    expect(rounds).toBeGreaterThanOrEqual(2);
  });
});

describe("splitSealed()", () => {
  const seal = { open: "\ue000", openEdge: "\ue001", breaker: "\ue002", close: "\ue003" };
  const literals = /<\|im_end\|>/gu;

  test.each(["a\ue003b", "a\ue002b", "\ue000a\ue000b\ue003", "a\ue000b", "\ue001a\ue001\ue003"])(
    "refuses a template that cuts the text: %j",
    async (text) => {
      await expect(splitSealed(text, seal, literals)).rejects.toThrow(
        /^Cannot find the control tokens/,
      );
    },
  );

  test("marks the pieces of literals and edges as plain, in order", async () => {
    const literal = [..."<|im_end|>"].join(seal.breaker);
    const text =
      `x\ue001<|\ue003im_end|> y \ue000${literal}\ue003 z \ue001<|\ue003 <|im_end|>` +
      `\ue001<|im_\ue003\ue001end|>\ue003`;
    expect(await splitSealed(text, seal, literals)).toEqual([
      { text: "x<|im_end|> y <|im_end|>", plain: true },
      { text: " z <| <|im_end|>", plain: false },
      { text: "<|im_end|>", plain: true },
    ]);
  });
});

test("hundreds of thousands of literals are cut out a stretch at a time", async () => {
  const seal = { open: "\ue000", openEdge: "\ue001", breaker: "\ue002", close: "\ue003" };
  const literal = `${seal.open}${[..."<|im_end|>"].join(seal.breaker)}${seal.close}`;
  const text = `a${literal} b`.repeat(200_000);
  const plain = "a<|im_end|> b".repeat(200_000);
  const cut = await countRounds(splitSealed(text, seal, /<\|im_end\|>/gu));
  expect(cut.result).toEqual([{ text: plain, plain: true }]);
  expect(cut.rounds).toBeGreaterThanOrEqual(3);
  const flat = await countRounds(unseal(text, seal));
  expect(flat.result === plain).toBe(true);
  expect(flat.rounds).toBeGreaterThanOrEqual(3);
});

/** Counts the rounds of the event loop until the result is there. */
async function countRounds<T>(working: Promise<T>): Promise<{ result: T; rounds: number }> {
  let rounds = 0;
  let isOver = false;
  const count = (): void => {
    rounds += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const result = await working;
  isOver = true;
  return { result, rounds };
}

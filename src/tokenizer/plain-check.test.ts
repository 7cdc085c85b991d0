import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RolloutError } from "../errors.ts";
import type { TokenCodec } from "./codec.ts";
import {
  codecOfDocument,
  idOfScored,
  idOfToken,
  metaspaceTokenizer,
  scoredTokenizer,
  wordAmongAdded,
} from "./metaspace-tokenizer.fixture.ts";
import { createPlainCheck } from "./plain-check.ts";

const idsOf = (...spellings: string[]): number[] => spellings.map(idOfToken);

/** A pattern of no published model, so that the library runs in its own process. */
const isolating = {
  pre_tokenizer: {
    type: "Split",
    pattern: { Regex: "(?:qq)+zz" },
    behavior: "Isolated",
    invert: false,
  },
};

describe.each([
  ["native", "native", {}],
  ["isolated", "native", isolating],
  ["javascript", "javascript", {}],
] as const)("plain text of a tokenizer like Gemma's, %s", (_name, backend, changed) => {
  let codec: TokenCodec;
  let strict: TokenCodec;
  beforeAll(async () => {
    codec = await codecOfDocument({ ...metaspaceTokenizer, ...changed }, { backend });
    strict = await codecOfDocument({ ...wordAmongAdded, ...changed }, { backend });
  });
  afterAll(async () => {
    await codec.close?.();
    await strict.close?.();
  });

  test("contains the white space that the merges produce", async () => {
    expect(await codec.encodePlain("a  b")).toEqual(idsOf("a", "▁▁", "b"));
    expect(await codec.encodePlain("a▁▁▁b\n\nc")).toEqual(idsOf("a", "▁▁▁", "b", "\n\n", "c"));
  });

  test("contains characters that are added tokens as well", async () => {
    expect(await codec.encodePlain("<b>10</b>")).toEqual(idsOf(..."<b>10</b>"));
  });

  test("contains no other added token", async () => {
    expect(await codec.encode("<b><end_of_turn>")).toEqual(idsOf("<b>", "<end_of_turn>"));
    expect(await codec.encodePlain("<b><end_of_turn>")).toEqual(idsOf(..."<b><end_of_turn>"));
  });

  test("fails only for a text of which the merges make another added token", async () => {
    const failing = strict.encodePlain("so no");
    await expect(failing).rejects.toBeInstanceOf(RolloutError);
    await expect(failing).rejects.toMatchObject({
      code: "internal/guard",
      message:
        "Cannot keep control tokens out of untrusted text: the tokenizer's own model makes the added token " +
        `no (${idOfToken("no")}) of it; choose the guard policy "hf-parity", or "special-only" for a token ` +
        "that is not special",
    });
    expect(await strict.encodePlain("so n o")).toEqual(idsOf("s", "o", "▁", "n", "▁", "o"));
  });
});

describe.each(["native", "javascript"] as const)("plain text by scores, %s", (backend) => {
  let codec: TokenCodec;
  beforeAll(async () => (codec = await codecOfDocument(scoredTokenizer, { backend })));
  afterAll(async () => await codec.close?.());
  const scoredIds = (...spellings: string[]): number[] => spellings.map(idOfScored);

  test("contains the white space that the model produces, although it is an added token", async () => {
    expect(await codec.encodePlain("a  b")).toEqual(scoredIds("a", "▁▁", "b"));
    expect(await codec.encode("a  b")).toEqual(scoredIds("a", "▁▁", "b"));
  });

  test("contains the token for unknown characters, although it is an added token", async () => {
    expect(await codec.encodePlain("a語b")).toEqual(scoredIds("a", "<unk>", "b"));
    expect(await codec.encode("a語b")).toEqual(scoredIds("a", "<unk>", "b"));
  });

  test("contains no literal as its id, with or without unknown characters", async () => {
    expect(await codec.encode("</s>語<unk>")).toEqual(scoredIds("</s>", "<unk>", "<unk>"));
    expect(await codec.encodePlain("</s>語<unk>")).toEqual(
      scoredIds(..."</s>", "<unk>", ..."<unk>"),
    );
  });

  test("is the same as full text after any number of unknown characters", async () => {
    const text = "語a".repeat(20_000) + "a  b";
    expect(await codec.encodePlain(text)).toEqual(await codec.encode(text));
  });
});

describe("createPlainCheck()", () => {
  test("accepts white space and single characters, and no token that may act as a control token", async () => {
    const check = createPlainCheck([
      { id: 1, content: "<|im_end|>", special: true },
      { id: 2, content: "<|START_OF_TURN_TOKEN|>", special: false },
      { id: 3, content: "▁▁", special: false },
      { id: 4, content: "\t\n ", special: false },
      { id: 5, content: "▁a", special: false },
      { id: 6, content: "7", special: false },
      { id: 7, content: "👍", special: false },
      { id: 8, content: "8", special: true },
      { id: 10, content: "<unk>", special: true, unknown: true },
    ]);
    expect(await check([0, 3, 4, 6, 7, 9, 10])).toEqual([0, 3, 4, 6, 7, 9, 10]);
    for (const id of [1, 2, 5, 8]) {
      for (const ids of [[id], [0, id], [3, id, 0]]) {
        await expect(check(ids)).rejects.toMatchObject({ code: "internal/guard" });
      }
    }
  });
});

import { fileURLToPath } from "node:url";
import fc from "fast-check";
import type { Tokenizer } from "tokenizers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toWellFormed } from "../../text/well-formed.ts";
import type { TokenCodec } from "../codec.ts";
import { loadTokenCodec } from "../load-codec.ts";
import { libraryTokenizer, modelFolder, modelNames } from "../real-tokenizers.fixture.ts";
import { hardFragments, hardTexts } from "./hard-texts.fixture.ts";

const shippedModel = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));

describe.each([...modelNames, "storefront-2m"] as const)("%s", (name) => {
  const folder = name === "storefront-2m" ? shippedModel : modelFolder(name);
  let codec: TokenCodec;
  let library: Tokenizer;

  beforeAll(async () => {
    codec = await loadTokenCodec(folder);
    library = libraryTokenizer(folder);
  });

  afterAll(async () => {
    await codec.close?.();
  });

  async function ask(text: string): Promise<number[]> {
    return (await library.encode(text, null, { addSpecialTokens: false })).getIds();
  }

  test("any text gets the library's ids, at once or in steps", async () => {
    let knownCount = 0;
    await fc.assert(
      fc.asyncProperty(hardTexts, async (text) => {
        const expected = await ask(text);
        const known = codec.encodeNow?.(text);
        if (known !== undefined) {
          knownCount += 1;
          expect(known).toEqual(expected);
        }
        expect(await codec.encode(text)).toEqual(expected);
      }),
      { numRuns: 150 },
    );
    expect(knownCount).toBeGreaterThan(20);
  });

  test.each([
    ["words and all kinds of fragments", (place: number) => `word ${hardFragments[place % 90]}`],
    ["lines", (place: number) => `line ${place}: │ naïve ✓ 🚀 → done\n`],
    ["one letter", () => "a"],
    ["one ideograph", () => "中"],
    ["spaces", () => "  "],
    ["digits", (place: number) => String(place % 10)],
    ["letters and digits without spaces", (place: number) => (place * 7919).toString(36)],
    ["accents", () => "e\u0301"],
    ["new emoji", (place: number) => (place % 9 === 0 ? "\u{1fae9} " : "so it is, ")],
  ])("a long text of %s gets the library's ids", async (_what, partOf) => {
    let text = "";
    for (let place = 0; text.length < 40_000; place++) text += partOf(place) ?? "";
    const [first, second] = await Promise.all([codec.encode(text), codec.encode(text.slice(1))]);
    expect(String(first) === String(await ask(text))).toBe(true);
    expect(String(second) === String(await ask(text.slice(1)))).toBe(true);
  });

  test("a text in which added tokens are ordinary text restores it", async () => {
    const tokenIds = new Set(codec.addedTokens.map(({ id }) => id));
    await fc.assert(
      fc.asyncProperty(hardTexts, async (text) => {
        const ids = await codec.encodePlain(text);
        const expected = toWellFormed(text);
        const decoded = await codec.decode(ids);
        expect(decoded.normalize("NFC")).toBe(expected.normalize("NFC"));
        expect(ids.some((id) => tokenIds.has(id))).toBe(false);
      }),
      { numRuns: 100 },
    );
  });

  test("a long text lets other work run", async () => {
    const text = Array.from({ length: 40_000 }, (_, place) => (place * 7919).toString(36)).join(
      " ",
    );
    let count = 0;
    const timer = setInterval(() => (count += 1), 1);
    await codec.encode(text);
    clearInterval(timer);
    expect(count).toBeGreaterThan(3);
  });
});

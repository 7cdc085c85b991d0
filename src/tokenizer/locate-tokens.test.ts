import { describe, expect, test } from "vitest";
import {
  byteFallbackTokenizer,
  codecOfDocument,
  countFallbackIds,
} from "./metaspace-tokenizer.fixture.ts";
import { modelCodec } from "./real-tokenizers.fixture.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { locateTokens } from "./locate-tokens.ts";

const call = '<tool_call>\n{"name": "get_order"}\n</tool_call>';

describe("locateTokens()", () => {
  test("finds the ids of spans among words, control tokens and split characters", async () => {
    const codec = await modelCodec("qwen3");
    const text = `Größe 🧞‍♀️: ${call} – 注文<|im_end|>`;
    const ids = await codec.encode(text);
    const start = text.indexOf(call);
    const genie = text.indexOf("🧞‍♀️");
    const [callSpan, genieSpan, complete] = await locateTokens(codec, { ids, text }, [
      [start, start + call.length],
      [genie, genie + "🧞‍♀️".length],
      [0, text.length],
    ]);
    expect(await codec.decode(ids.slice(...callSpan!))).toBe(call);
    expect(await codec.decode(ids.slice(...genieSpan!))).toBe(" 🧞‍♀️");
    expect(complete).toEqual([0, ids.length]);
  });

  test("includes ids that cover only a part of the span", async () => {
    const codec = await modelCodec("qwen3");
    // " cancelled" as two ids.
    const turn = { ids: [9121, 832], text: " cancelled" };
    expect(await codec.decode(turn.ids)).toBe(turn.text);
    const spans = [
      [0, 2],
      [3, 10],
      [8, 9],
      [7, 7],
    ] as const;
    expect(await locateTokens(codec, turn, spans)).toEqual([
      [0, 1],
      [0, 2],
      [1, 2],
      [1, 1],
    ]);
  });

  test.each(["native", "javascript"] as const)(
    "finds spans if some ids are bytes and others characters, for any number of them (%s)",
    async (backend) => {
      const codec = await codecOfDocument(byteFallbackTokenizer, { backend });
      // In the second text, the lengths of the token texts add up to the text's length by chance.
      for (const text of ["Größe 🧞‍♀️:\n<a> – 注文 é", "\nééé東 <a>é", "aé", "😀😀", "<a>\n\n"]) {
        const ids = await codec.encode(text);
        const characters = [...text];
        const [starts, places] = [[0], [1]];
        for (const character of characters) {
          starts.push(starts.at(-1)! + character.length);
          places.push(places.at(-1)! + countFallbackIds(character));
        }
        expect(places.at(-1)).toBe(ids.length);
        const spans: [number, number][] = [];
        const expected: [number, number][] = [];
        for (let from = 0; from < characters.length; from++) {
          for (let to = from + 1; to <= characters.length; to++) {
            spans.push([starts[from]!, starts[to]!]);
            expected.push([places[from]!, places[to]!]);
          }
        }
        expect(await locateTokens(codec, { ids, text }, spans)).toEqual(expected);
      }
      await codec.close?.();
    },
  );

  test("decodes if token texts are not bytes, or bytes are not text", async () => {
    const { codec } = createCharacterRenderer();
    const text = "日本 <x>";
    const ids = await codec.encode(text);
    expect(await locateTokens(codec, { ids, text }, [[3, 6]])).toEqual([[3, 6]]);
    const qwen = await modelCodec("qwen3");
    const cut = [...(await qwen.encode("a🧞‍♀️")).slice(0, 2), ...(await qwen.encode(call))];
    const cutText = await qwen.decode(cut);
    const start = cutText.indexOf(call);
    const located = await locateTokens(qwen, { ids: cut, text: cutText }, [
      [start, start + call.length],
    ]);
    expect(await qwen.decode(cut.slice(...located[0]!))).toBe(call);
  });

  test("returns no spans for no spans", async () => {
    const { codec } = createCharacterRenderer();
    expect(await locateTokens(codec, { ids: [], text: "" }, [])).toEqual([]);
    expect(await locateTokens(codec, { ids: [], text: "" }, [[0, 0]])).toEqual([[0, 0]]);
  });
});

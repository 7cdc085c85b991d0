import { describe, expect, test } from "vitest";
import { hashTokenText } from "./token-text-reader.ts";
import { readVocabularyPart } from "./vocabulary-part.ts";

function read(json: string, start = 0) {
  return readVocabularyPart(Buffer.from(json), start);
}

describe("a vocabulary", () => {
  test("is indexed by token text and by id, for any JSON escapes", () => {
    const json = String.raw`{ "a" : 3, "\"\\" :0,"\u0120\u00e9":12 , "\ud83d\ude00x":7,"Ġ":1,"":2}, 9`;
    const part = read(`[${json}`, 1);
    const entries = Object.entries(JSON.parse(json.slice(0, -3)) as Record<string, number>);
    expect(entries).toHaveLength(6);
    for (const [spelling, id] of entries) {
      expect(part?.tokenTexts?.idOf(spelling)).toBe(id);
      expect(part?.tokenTexts?.textOf(id)).toBe(spelling);
    }
    expect(part?.largestId).toBe(12);
    expect(part?.end).toBe(Buffer.byteLength(json) - 2);
    expect(part?.tokenTexts?.count).toBe(6);
    expect(part?.tokenTexts?.idOf("b")).toBeUndefined();
    expect(part?.tokenTexts?.idOf("Ġé ")).toBeUndefined();
    for (const id of [-1, 4, 13, 0.5, 1e9]) expect(part?.tokenTexts?.textOf(id)).toBeUndefined();
  });

  test("may be empty", () => {
    const part = read("{ }");
    expect(part).toMatchObject({ end: 3, largestId: -1 });
    expect(part?.tokenTexts?.idOf("")).toBeUndefined();
    expect(part?.tokenTexts?.hasText(0, Buffer.from("a"), 0, 1)).toBe(false);
  });

  test.each([
    ["twice the same spelling", '{"a":0,"\\u0061":1}'],
    ["twice the same id", '{"a":0,"b":0}'],
    ["an id beyond all vocabularies", '{"a":4194305}'],
    ["an id that a number of 32 bits cannot hold", '{"a":4294967296}'],
  ])("cannot be indexed with %s", (_what, json) => {
    expect(read(json)?.end).toBe(json.length);
    expect(read(json)).not.toHaveProperty("tokenTexts");
  });

  test("cannot be indexed if too many texts have the same slot", () => {
    // The slot of 600 token texts has 11 bits.
    const placeOf = (spelling: string): number => {
      const hash = hashTokenText(Buffer.from(spelling), 0, spelling.length);
      return (hash ^ (hash >>> 15)) & 2047;
    };
    const together: string[] = [];
    for (let count = 0; together.length < 600; count++) {
      if (placeOf(`a${count}`) === 5) together.push(`a${count}`);
    }
    const jsonOf = (tokenTexts: readonly string[]): string =>
      JSON.stringify(Object.fromEntries(tokenTexts.map((spelling, id) => [spelling, id])));
    expect(read(jsonOf(together))).not.toHaveProperty("tokenTexts");
    expect(read(jsonOf(together.slice(0, 500)))?.tokenTexts?.idOf(together[499]!)).toBe(499);
  });

  test.each([
    "[]",
    '{"a":1',
    '{"a":}',
    '{"a":-1}',
    '{"a":1.5}',
    '{"a":01}',
    '{"a":00}',
    '{"a":1,}',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{"a\n":1}',
    String.raw`{"\x":1}`,
    String.raw`{"\ud800":1}`,
    String.raw`{"\udc00\ud800":1}`,
    String.raw`{"\u12":1}`,
    '{"a',
  ])("is not %s", (json) => {
    expect(read(json)).toBeUndefined();
  });
});

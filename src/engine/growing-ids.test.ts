import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GrowingIds, knownIdText } from "./growing-ids.ts";
import { joinParts } from "./http/byte-parts.ts";
import { jsonWithIds } from "./http/json-with-ids.ts";
import { largestTokenId } from "./token-id.ts";

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const written = (ids: Int32Array): string =>
  textOf(joinParts(jsonWithIds({}, { name: "ids", ids })));
const json = (ids: readonly number[]): string => JSON.stringify({ ids });

/** Enough ids for the text to be kept. */
const enough = Array.from({ length: 300 }, (_, index) => index * 997);

function listOf(ids: readonly number[]): GrowingIds {
  const list = new GrowingIds();
  list.append(ids);
  return list;
}

const anyId = fc.oneof(
  fc.integer({ min: 0, max: 200_000 }),
  fc.integer({ min: 0, max: largestTokenId }),
);

describe("GrowingIds", () => {
  test("writes its ids as JSON after any ids are added or removed, and shows them in its view", () => {
    const change = fc.oneof(fc.array(anyId, { maxLength: 40 }), fc.constant("remove" as const));
    fc.assert(
      fc.property(
        fc.array(anyId),
        fc.array(change, { maxLength: 12 }),
        fc.boolean(),
        (drawn, changes, isWrittenOften) => {
          const ids = [...enough, ...drawn];
          const list = listOf(ids);
          for (const each of changes) {
            if (each === "remove") {
              ids.pop();
              list.removeLast();
            } else {
              ids.push(...each);
              list.append(each);
            }
            expect([...list.view]).toEqual(ids);
            if (isWrittenOften) expect(written(list.view)).toBe(json(ids));
          }
          for (let time = 0; time < 3; time++) expect(written(list.view)).toBe(json(ids));
        },
      ),
    );
  });

  test("writes many ids at once, and then a few more", () => {
    const ids = [...enough];
    const list = listOf(ids);
    for (const count of [1, 1, 20_000, 1, 3, 100_000, 1]) {
      const added = Array.from({ length: count }, (_, at) => ((ids.length + at) * 7919) % 152_000);
      for (const id of added) ids.push(id);
      list.append(added);
      expect(written(list.view)).toBe(json(ids));
    }
  });

  test("writes only new ids from its second use on", () => {
    const list = listOf(enough);
    expect(knownIdText(list.view)).toBeUndefined();
    const text = knownIdText(list.view)!;
    // Changing the kept bytes shows that they are used again.
    text[0] = "x".charCodeAt(0);
    list.append([7]);
    expect(textOf(knownIdText(list.view)!)).toBe(`x${enough.join(",").slice(1)},7`);
  });

  test("writes an earlier view after later ids", () => {
    const list = listOf(enough);
    const early = list.view;
    for (let time = 0; time < 3; time++) {
      list.append([1_000_000 + time]);
      expect(written(list.view)).toBe(json([...list.view]));
      expect(written(early)).toBe(json(enough));
    }
  });

  test("keeps no text of a short list, of another typed array and of a part of its view", () => {
    const short = listOf([7, 8]).view;
    const other = Int32Array.from(enough);
    const part = listOf(enough).view.subarray(1);
    for (const ids of [short, other, part]) {
      for (let time = 0; time < 3; time++) expect(knownIdText(ids)).toBeUndefined();
      expect(written(ids)).toBe(json([...ids]));
    }
  });

  test("notices that a reader has transferred its memory, and keeps its length", () => {
    const list = listOf(enough);
    structuredClone(list.view, { transfer: [list.view.buffer as ArrayBuffer] });
    expect(list.isDetached).toBe(true);
    list.append([7]);
    expect([list.length, list.isDetached, knownIdText(list.view)]).toEqual([301, true, undefined]);
  });
});

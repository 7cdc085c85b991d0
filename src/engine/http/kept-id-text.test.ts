import fc from "fast-check";
import { expect, test } from "vitest";
import { InvariantError } from "../../errors.ts";
import { jsonWithIds } from "./json-with-ids.ts";
import { textOfKnownIds } from "./kept-id-text.ts";
import { largestTokenId } from "../token-id.ts";

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const written = (ids: readonly number[]): string => textOf(jsonWithIds({}, { name: "ids", ids }));

/** Enough ids for the text to be cached. */
const enough = Array.from({ length: 300 }, (_, index) => index * 997);

const anyId = fc.oneof(
  fc.integer({ min: 0, max: 200_000 }),
  fc.integer({ min: 0, max: largestTokenId }),
);
/** Changes of a list between two calls. */
const anyChange = fc.oneof(
  fc.record({ type: fc.constant("add"), ids: fc.array(anyId, { maxLength: 40 }) }),
  fc.record({ type: fc.constant("drop"), count: fc.nat({ max: 5 }) }),
  fc.record({ type: fc.constant("set"), place: fc.nat({ max: 60 }), id: anyId }),
);

test("jsonWithIds() writes the current contents of a list after any change", () => {
  fc.assert(
    fc.property(fc.array(anyId), fc.array(anyChange, { maxLength: 12 }), (drawn, changes) => {
      const ids = [...enough, ...drawn];
      expect(written(ids)).toBe(JSON.stringify({ ids }));
      for (const change of changes) {
        if ("ids" in change) ids.push(...change.ids);
        else if ("count" in change) ids.length -= change.count;
        else ids[ids.length - 1 - change.place] = change.id;
        expect(written(ids)).toBe(JSON.stringify({ ids }));
      }
    }),
  );
});

test("jsonWithIds() writes many ids at once, and then a few more", () => {
  const ids = [...enough];
  for (const count of [1, 1, 20_000, 1, 3, 100_000, 1]) {
    for (let added = 0; added < count; added++) ids.push((ids.length * 7919) % 152_000);
    expect(written(ids)).toBe(JSON.stringify({ ids }));
  }
  ids.length = 280;
  for (let time = 0; time < 3; time++) expect(written(ids)).toBe(JSON.stringify({ ids }));
});

test("only new ids of a repeated list are written", () => {
  const ids = [...enough];
  expect(textOfKnownIds(ids)).toBeUndefined();
  const text = textOfKnownIds(ids)!;
  // Changing the cached bytes shows that they are reused.
  text[0] = "x".charCodeAt(0);
  ids.push(7);
  expect(textOf(textOfKnownIds(ids)!)).toBe(`x${enough.join(",").slice(1)},7`);
});

test("each id of a list is read once", () => {
  const reads: string[] = [];
  const ids = new Proxy([...enough], {
    get(list, name, receiver) {
      reads.push(String(name));
      return Reflect.get(list, name, receiver) as unknown;
    },
  });
  for (let time = 0; time < 30; time++) {
    for (let count = 0; count < 40; count++) ids.push(time);
    reads.length = 0;
    const text = textOfKnownIds(ids);
    if (time === 0) {
      expect(text).toBeUndefined();
      continue;
    }
    // Read once, for comparing or for writing.
    const places = reads.filter((name) => name !== "length");
    expect(places).toEqual(Array.from(ids, (_, index) => String(index)));
    expect(`[${textOf(text!)}]`).toBe(JSON.stringify([...ids]));
  }
});

test("jsonWithIds() refuses an invalid id in a known list, and writes the list after it is removed", () => {
  const ids = [...enough];
  for (let time = 0; time < 3; time++) written(ids);
  for (const place of [0, 2, 299, 300]) {
    const before = ids[place];
    ids[1] = 1_000_000;
    ids[place] = 0.5;
    for (let time = 0; time < 2; time++) expect(() => written(ids)).toThrow(InvariantError);
    if (before === undefined) ids.pop();
    else ids[place] = before;
    ids[1] = enough[1]!;
    for (let time = 0; time < 3; time++) expect(written(ids)).toBe(JSON.stringify({ ids: enough }));
  }
});

test("a list that throws, changes or calls again while it is read leaves no half-written text", () => {
  for (const place of [0, 150, 299, 301]) {
    for (const known of [0, 1, 2, 3]) {
      let onRead: (() => void) | undefined;
      const list = [...enough];
      const ids = new Proxy(list, {
        get(target, name, receiver) {
          const act = onRead;
          if (name === String(place) && act !== undefined) {
            onRead = undefined;
            act();
          }
          return Reflect.get(target, name, receiver) as unknown;
        },
      });
      for (let time = 0; time < known; time++) written(ids);
      list.push(7, 8, 9);
      list[1] = 5;
      onRead = () => {
        throw new Error("not now");
      };
      expect(() => written(ids)).toThrow("not now");
      list[1] = enough[1]!;
      for (let time = 0; time < 3; time++) {
        expect(written(ids)).toBe(JSON.stringify({ ids: list }));
        onRead = () => {
          list[0] = 1_000_000 + time;
          written(ids);
          list[0] = enough[0]!;
        };
        expect(written(ids)).toBe(JSON.stringify({ ids: list }));
        onRead = undefined;
        expect(written(ids)).toBe(JSON.stringify({ ids: list }));
      }
    }
  }
});

test("two lists that are written alternately are kept apart", () => {
  const [left, right] = [[...enough], [...enough, 3]];
  for (let time = 0; time < 4; time++) {
    expect(written(left)).toBe(JSON.stringify({ ids: left }));
    expect(written(right)).toBe(JSON.stringify({ ids: right }));
    left.push(1_000_000 + time);
    right.push(time);
  }
});

test("textOfKnownIds() caches nothing for a first call or a short list, and accepts a frozen list", () => {
  const ids = Object.freeze([...enough]);
  expect(textOfKnownIds(ids)).toBeUndefined();
  for (let time = 0; time < 2; time++) expect(textOf(textOfKnownIds(ids)!)).toBe(enough.join(","));
  const short = [7, 8];
  for (let time = 0; time < 3; time++) expect(textOfKnownIds(short)).toBeUndefined();
});

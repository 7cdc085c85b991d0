import fc from "fast-check";
import { expect, test } from "vitest";
import { InvariantError } from "../errors.ts";
import { jsonWithIds } from "./json-with-ids.ts";
import { textOfKnownIds } from "./kept-id-text.ts";
import { largestTokenId } from "./token-id.ts";

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");
const written = (ids: readonly number[]): string => textOf(jsonWithIds({}, { name: "ids", ids }));

const anyId = fc.oneof(
  fc.integer({ min: 0, max: 200_000 }),
  fc.integer({ min: 0, max: largestTokenId }),
);
/** What may become of a list between two times that it is written. */
const anyChange = fc.oneof(
  fc.record({ type: fc.constant("add"), ids: fc.array(anyId, { maxLength: 40 }) }),
  fc.record({ type: fc.constant("drop"), count: fc.nat({ max: 5 }) }),
  fc.record({ type: fc.constant("set"), place: fc.nat({ max: 60 }), id: anyId }),
);

test("jsonWithIds() writes a list as it is each time, whatever became of it since", () => {
  fc.assert(
    fc.property(fc.array(anyId), fc.array(anyChange, { maxLength: 12 }), (ids, changes) => {
      expect(written(ids)).toBe(JSON.stringify({ ids }));
      for (const change of changes) {
        if ("ids" in change) ids.push(...change.ids);
        else if ("count" in change) ids.length = Math.max(ids.length - change.count, 0);
        else if (change.place < ids.length) ids[change.place] = change.id;
        expect(written(ids)).toBe(JSON.stringify({ ids }));
      }
    }),
  );
});

test("jsonWithIds() refuses what is no id in a list that it knows, and writes the list when it is gone", () => {
  const ids = [1, 22, 333];
  for (let time = 0; time < 3; time++) written(ids);
  for (const place of [0, 2, 3]) {
    const before = ids[place];
    ids[place] = 0.5;
    for (let time = 0; time < 2; time++) expect(() => written(ids)).toThrow(InvariantError);
    if (before === undefined) ids.pop();
    else ids[place] = before;
    expect(written(ids)).toBe('{"ids":[1,22,333]}');
  }
});

test("two lists that are written in turns are kept apart", () => {
  const [left, right] = [[1], [2, 3]];
  for (let time = 0; time < 4; time++) {
    expect(written(left)).toBe(JSON.stringify({ ids: left }));
    expect(written(right)).toBe(JSON.stringify({ ids: right }));
    left.push(1_000_000 + time);
    right.push(time);
  }
});

test("textOfKnownIds() keeps nothing of a list the first time, and takes one that is frozen", () => {
  const ids = Object.freeze([7, 8]);
  expect(textOfKnownIds(ids)).toBeUndefined();
  expect(textOf(textOfKnownIds(ids)!)).toBe("7,8");
  expect(textOf(textOfKnownIds(ids)!)).toBe("7,8");
});

import { expect, test } from "vitest";
import { whyNotJson } from "./why-not-json.ts";

function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
}

const tooDeep = "it nests deeper than 400 lists and objects";

test.each([
  [400, undefined],
  [401, tooDeep],
])("%d levels of lists", (depth, why) => {
  expect(whyNotJson(nested(depth))).toBe(why);
});

test("what is written counts, not what writes it", () => {
  expect(whyNotJson({ toJSON: () => nested(401) })).toBe(tooDeep);
  // Rows that know their table, of which JSON says two levels.
  const table: unknown[] = [];
  for (let id = 0; id < 401; id++) table.push({ table, toJSON: () => ({ id }) });
  expect(whyNotJson(table)).toBeUndefined();
});

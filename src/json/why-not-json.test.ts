import fc from "fast-check";
import { expect, test } from "vitest";
import { isSmallData, whyNotJson } from "./why-not-json.ts";

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

test("the written value counts, not its toJSON()", () => {
  expect(whyNotJson({ toJSON: () => nested(401) })).toBe(tooDeep);
  // Rows with a reference to their table; their JSON is two levels deep.
  const table: unknown[] = [];
  for (let id = 0; id < 401; id++) table.push({ table, toJSON: () => ({ id }) });
  expect(whyNotJson(table)).toBeUndefined();
});

test("a value that is seen to be plain is one that can be written, and no other is", () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
    fc.bigInt(),
    fc.constant(() => 1),
    fc.constant(Symbol("s")),
    fc.date(),
    fc.constant({ toJSON: () => 1n }),
    fc.constant(Object.assign([1], { toJSON: () => 1n })),
    fc.constant(new Map([[1, 1n]])),
    fc.constant(Object.create({ inherited: 1n })),
    fc.constant(Object.create(null, { own: { value: 1n, enumerable: true } })),
    fc.constant(new Array(3)),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 10, depthSize: "large" },
      leaf,
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(fc.string(), tie("tree"), { maxKeys: 3 }),
    ),
  }));
  fc.assert(
    fc.property(tree, (value) => {
      let written = true;
      try {
        JSON.stringify(value);
      } catch {
        written = false;
      }
      if (isSmallData(value)) expect(written).toBe(true);
      expect(whyNotJson(value) === undefined).toBe(written);
    }),
    { numRuns: 2000 },
  );
});

test("circular, long or deep values do not count as small", () => {
  const round: unknown[] = [];
  round.push(round);
  expect(isSmallData(round)).toBe(false);
  expect(whyNotJson(round)).toContain("circular");
  expect(isSmallData({ text: "x".repeat(20_000) })).toBe(false);
  expect(isSmallData(new Array(20_001))).toBe(false);
  expect(isSmallData(nested(9))).toBe(false);
  expect(isSmallData(nested(8))).toBe(true);
});

test("a value that throws on inspection is named by its error", () => {
  const member = {
    get hidden(): never {
      throw new Error("not now");
    },
  };
  expect(isSmallData(member)).toBe(false);
  expect(whyNotJson(member)).toBe("not now");
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(isSmallData(proxy)).toBe(false);
});

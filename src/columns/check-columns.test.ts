import { expect, test } from "vitest";
import { findColumnProblem, findValueProblem } from "./check-columns.ts";
import { createColumnPart, type ColumnPart, type ColumnParts } from "./column-part.ts";
import type { ColumnSpecs } from "./column-specs.ts";
import { encodeRagged } from "./ragged-rows.ts";

const shape = { layerCount: 2, perToken: 2, expertCount: 6 };
const specs = { routedExperts: shape, keptTokens: { maxCount: 3 }, topLogprobs: { count: 2 } };
const sampledIds = [7, 8];
/** Three prompt ids and two sampled ones: rows of tokens 1 to 3. */
const wanted = { specs, knownRows: 1, promptLength: 3, sampledIds, vocabularySize: 10 };

function routes(rows: readonly (readonly number[])[], from = 1): readonly ColumnPart[] {
  return [
    {
      ...createColumnPart({
        from,
        rows: rows.length,
        policyVersion: "1",
        bytes: Uint8Array.from(rows.flat()),
      }),
    },
  ];
}

function ragged(
  lists: readonly (readonly number[])[],
  logprobs?: readonly number[],
): readonly ColumnPart[] {
  const bytes = encodeRagged({
    counts: Uint32Array.from(lists, ({ length }) => length),
    ids: Int32Array.from(lists.flat()),
    ...(logprobs && { logprobs: Float32Array.from(logprobs) }),
  });
  return [createColumnPart({ from: 3, rows: lists.length, policyVersion: "1", bytes })];
}

const goodRows = [
  [0, 0, 1, 2],
  [0, 0, 5, 0],
  [0, 0, 3, 4],
];
const good: ColumnParts = {
  routedExperts: routes(goodRows),
  keptTokens: ragged([[7], [1, 8, 9]]),
  topLogprobs: ragged([[1, 7], [8]], [-0.5, -1, 0]),
};

test("columns without a problem", () => {
  expect(findColumnProblem(good, wanted)).toBeUndefined();
  expect(findColumnProblem(undefined, undefined)).toBeUndefined();
  expect(findColumnProblem(undefined, { ...wanted, sampledIds: [] })).toBeUndefined();
});

test("rows can come in several parts", () => {
  const routedExperts = [...routes(goodRows.slice(0, 2)), ...routes(goodRows.slice(2), 3)];
  expect(findColumnProblem({ ...good, routedExperts }, wanted)).toBeUndefined();
});

test.each<[string, unknown, string]>([
  ["no columns", undefined, "columns is absent"],
  ["no object", 5, "columns is 5"],
  ["a missing column", { ...good, keptTokens: undefined }, "column keptTokens is absent"],
  ["a missing column's list", { ...good, keptTokens: [] }, "column keptTokens has 0 rows"],
  ["another column", { ...good, indexerTopK: routes(goodRows) }, "columns has indexerTopK"],
  ["an unknown column", { ...good, other: 1 }, "columns has other"],
  ["one row too few", { ...good, routedExperts: routes(goodRows.slice(1)) }, "has 2 rows"],
  [
    "one row too many",
    { ...good, routedExperts: routes([...goodRows, [0, 0, 1, 2]]) },
    "has 4 rows",
  ],
  [
    "a shift",
    { ...good, routedExperts: routes(goodRows, 2) },
    "columns.routedExperts[0].from is 2",
  ],
  ["a part that is no object", { ...good, routedExperts: [null] }, "from is absent"],
  [
    "an id of no expert",
    { ...good, routedExperts: routes(goodRows.with(1, [0, 0, 6, 1])) },
    "row 1 of column routedExperts has the experts 6, 1 in layer 1",
  ],
  [
    "an expert twice",
    { ...good, routedExperts: routes(goodRows.with(2, [0, 0, 3, 3])) },
    "row 2 of column routedExperts has the experts 3, 3 in layer 1",
  ],
  [
    "zeros in a layer with experts",
    { ...good, routedExperts: routes(goodRows.with(2, [0, 0, 0, 0])) },
    "the experts 0, 0 in layer 1",
  ],
  [
    "experts in a dense layer",
    { ...good, routedExperts: routes(goodRows.with(2, [1, 2, 3, 4])) },
    "the experts 1, 2 in layer 0",
  ],
  [
    "zeros alone",
    { ...good, routedExperts: routes(goodRows.map(() => [0, 0, 0, 0])) },
    "is zero in all 2 layers",
  ],
  [
    "a set without the drawn token",
    { ...good, keptTokens: ragged([[7], [1, 9]]) },
    "lacks the sampled id 8",
  ],
  [
    "an empty set",
    { ...good, keptTokens: ragged([[7], []]) },
    "row 1 of column keptTokens has 0 ids",
  ],
  ["a large set", { ...good, keptTokens: ragged([[7], [8, 1, 2, 3]]) }, "has 4 ids"],
  ["an id twice", { ...good, keptTokens: ragged([[7], [8, 1, 1]]) }, "has the id 1 twice"],
  [
    "an id outside the vocabulary",
    { ...good, keptTokens: ragged([[7], [8, 10]]) },
    "has the id 10",
  ],
  ["a negative id", { ...good, keptTokens: ragged([[7], [8, -1]]) }, "has the id -1"],
  [
    "tops out of order",
    { ...good, topLogprobs: ragged([[1, 7], [8]], [-1, -0.5, 0]) },
    "a higher logprob",
  ],
  [
    "a NaN",
    { ...good, topLogprobs: ragged([[1, 7], [8]], [-1, Number.NaN, 0]) },
    "the logprob NaN",
  ],
  [
    "a probability above 1",
    { ...good, topLogprobs: ragged([[1, 7], [8]], [1, -1, 0]) },
    "the logprob 1",
  ],
])("%s", (_, columns, problem) => {
  expect(findColumnProblem(columns, wanted)?.problem).toContain(problem);
});

test.each([
  ["bytes that are not rows", { bytes: new Uint8Array(11), size: 11 }, "has 11 bytes"],
  ["another size", { size: 13 }, ".size is 13"],
  ["another hash", { hash: "0".repeat(32) }, "hash is not that of its bytes"],
  ["no bytes", { bytes: undefined }, "has no bytes"],
  ["no version", { policyVersion: undefined }, "expected a policy version"],
  ["no rows", { rows: 0 }, ".rows is 0"],
])("a part with %s", (_, change, problem) => {
  const routedExperts = [{ ...good.routedExperts![0], ...change }];
  const found = findColumnProblem({ ...good, routedExperts }, wanted);
  expect(`${found?.problem}, expected ${found?.expected}`).toContain(problem);
});

test("ids of many experts have two bytes", () => {
  const wide = { specs: { routedExperts: { layerCount: 1, perToken: 2, expertCount: 300 } } };
  const check = (ids: readonly number[]): string | undefined => {
    const bytes = new Uint8Array(Uint16Array.from(ids).buffer);
    const part = createColumnPart({ from: 1, rows: ids.length / 2, policyVersion: "", bytes });
    return findColumnProblem({ routedExperts: [part] }, { ...wanted, ...wide })?.problem;
  };
  expect(check([1, 299, 256, 0, 3, 4])).toBeUndefined();
  expect(check([1, 299, 300, 0, 3, 4])).toContain("the experts 300, 0");
});

test("with one expert a token, zeros are expert 0", () => {
  const narrow = { layerCount: 2, perToken: 1, expertCount: 4 };
  const one: ColumnSpecs = { routedExperts: narrow };
  const routedExperts = routes([
    [0, 0],
    [0, 3],
    [0, 0],
  ]);
  expect(findColumnProblem({ routedExperts }, { ...wanted, specs: one })).toBeUndefined();
});

test("bytes that were checked as they arrived are not checked again", async () => {
  const [part] = good.routedExperts!;
  const checked = { rows: 3, bytes: part!.bytes!, start: 0 };
  await expect(findValueProblem("routedExperts", checked, wanted)).resolves.toBeUndefined();
  const routedExperts = [{ ...part!, hash: "not read" }];
  expect(findColumnProblem({ ...good, routedExperts }, wanted)).toBeUndefined();
});

test("finds each pair of equal experts among eight", async () => {
  const eight = { layerCount: 3, perToken: 8, expertCount: 128 };
  const all = { ...wanted, specs: { routedExperts: eight } };
  const layer = [0, 127, 1, 64, 2, 99, 128 - 5, 3];
  const rows = [...layer.toReversed(), ...layer, ...layer];
  const faultOf = async (ids: readonly number[], offset = 0): Promise<string | undefined> => {
    const bytes = new Uint8Array(ids.length + offset).subarray(offset);
    bytes.set(ids);
    const found = await findValueProblem("routedExperts", { rows: 2, bytes, start: 0 }, all);
    return found?.problem;
  };
  expect(await faultOf([...rows, ...rows])).toBeUndefined();
  for (const offset of [0, 1]) {
    for (let one = 0; one < 8; one++) {
      for (let other = 0; other < 8; other++) {
        if (one === other) continue;
        const wrong = layer.with(one, layer[other]!);
        expect(await faultOf([...rows, ...layer, ...wrong, ...layer], offset)).toBe(
          `row 1 of column routedExperts has the experts ${wrong.join(", ")} in layer 1`,
        );
      }
    }
    for (const wrong of [layer.with(6, 128), layer.with(0, 255), layer.map(() => 0)]) {
      expect(await faultOf([...rows, ...layer, ...layer, ...wrong], offset)).toBe(
        `row 1 of column routedExperts has the experts ${wrong.join(", ")} in layer 2`,
      );
    }
  }
});

test("with eight experts a token, ids are held against every number of experts", () => {
  for (let expertCount = 9; expertCount <= 256; expertCount++) {
    const shape8 = { layerCount: 1, perToken: 8, expertCount };
    const wanted8 = { specs: { routedExperts: shape8 }, knownRows: 0, promptLength: 2 };
    // The first row shows that the layer has experts. The second takes the fast way.
    const problemOf = (place: number, id: number) => {
      const row = [0, 1, 2, 3, 4, 5, 6, 7];
      const changed = row.with(place, id);
      const parts = { routedExperts: routes([row, changed], 0) };
      return findColumnProblem(parts, { ...wanted8, sampledIds: [7], vocabularySize: 10 });
    };
    for (let place = 0; place < 8; place++) {
      expect(problemOf(place, expertCount - 1)).toBeUndefined();
      for (const id of [expertCount, 255]) {
        if (id < expertCount || id > 255) continue;
        const found = problemOf(place, id)!;
        expect(found.expected).toBe(`ids of experts, 0 to ${expertCount - 1}`);
      }
    }
  }
});

import { expect, test } from "vitest";
import { EpisodeState } from "./episode-state.ts";
import { NotPlain, writePlainJson } from "../plain-text.ts";
import { copyOf } from "./copy-graph.ts";
import { isSparse } from "./sparse-list.ts";

/** The last index of the longest list. */
const farPlaces = [100_000, 100_000_000, 2 ** 32 - 2];

/** A list with one item, at this place. */
function listTo(place: number): unknown[] {
  const list: unknown[] = [];
  list[place] = "Ann";
  return list;
}

test.each([
  ["empty", [], false],
  ["short", listTo(1000), false],
  ["whole", Array.from({ length: 100_000 }, (_, place) => place), false],
  ["with a few holes", Object.assign(listTo(100_000).fill(1), { length: 100_100 }), false],
  ["with an item far after the others", Object.assign(listTo(100_000), [1, 2, 3]), true],
] as const)("a list that is %s is recognized", (_, list, expected) => {
  expect(isSparse(list)).toBe(expected);
});

test.each(farPlaces)("a sparse list is copied with its holes, %d", (place) => {
  const copy = copyOf(Object.assign(listTo(place), ["first"], { note: "no item" }));
  expect(copy).toHaveLength(place + 1);
  expect(Object.entries(copy)).toEqual([
    ["0", "first"],
    [String(place), "Ann"],
    ["note", "no item"],
  ]);
});

test.each(farPlaces)("a call adds a list and writes at index %d", async (place) => {
  const state = new EpisodeState<{ rows: Record<string, unknown[]> }>({ rows: {} });
  await state.change(
    async ({ rows }) => {
      rows["a"] ??= [];
      rows["a"][place] = { name: "Ann" };
    },
    () => true,
  );
  await state.change(
    async ({ rows }) => void ((rows["a"]![place] as { name: string }).name = "Bo"),
    () => true,
  );
  const { rows } = state.close();
  expect(rows["a"]).toHaveLength(place + 1);
  expect(Object.entries(rows["a"]!)).toEqual([[String(place), { name: "Bo" }]]);
});

test("a sparse list keeps its accessors, also in a copy", async () => {
  const list = Object.defineProperty(listTo(100_000), "size", {
    get(this: unknown[]) {
      return this.length;
    },
    enumerable: true,
  });
  const state = new EpisodeState({ list: list as unknown[] & { readonly size: number } });
  await state.change(
    async (given) => void given.list.push("Bo"),
    () => true,
  );
  expect(state.close().list.size).toBe(100_002);
});

test.each([
  ["short", Object.assign(listTo(4), { 2: 5 })],
  ["with names like places", Object.assign(listTo(100_000), { "01": "x", "1e3": "y" })],
  ["far", Object.assign(listTo(100_000_000), [1, 2, 3])],
])("a refused call that shortens a list leaves it its holes, %s", async (_, list) => {
  const before = Object.entries(list);
  const { length } = list;
  const shorten: ((given: unknown[]) => unknown)[] = [
    (given) => (given.length = 1),
    (given) => ((given as { length: unknown }).length = "2"),
    (given) => given.pop(),
  ];
  for (const call of shorten) {
    const state = new EpisodeState({ list });
    await state.change(
      async (given) => {
        call(given.list);
        given.list.push("Cy");
      },
      () => false,
    );
    const { list: after } = state.close();
    expect(after).toHaveLength(length);
    expect(Object.entries(after)).toEqual(before);
  }
});

test("a refused call that deletes an accessor of a list keeps it", async () => {
  const list = Object.defineProperty(["Ann"], "size", {
    get(this: unknown[]) {
      return this.length;
    },
    enumerable: true,
    configurable: true,
  });
  const state = new EpisodeState<{ list: string[] & { size?: number } }>({ list });
  await state.change(
    async (given) => void delete given.list.size,
    () => false,
  );
  await state.change(
    async (given) => void given.list.push("Bo"),
    () => true,
  );
  expect(state.close().list.size).toBe(2);
});

test.each(farPlaces)("a list with an item at index %d cannot be written as text", (place) => {
  const write = (): string => writePlainJson({ seats: listTo(place) });
  expect(write).toThrow(NotPlain);
  expect(write).toThrow(`its seats is a list of ${place + 1} places, most of them empty`);
});

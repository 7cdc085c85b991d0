import { describe, expect, test } from "vitest";
import { createSeededRandom } from "./seeded-random.ts";

describe("createSeededRandom()", () => {
  test("gives the same numbers from the same text, on every machine", () => {
    const random = createSeededRandom("storefront/test/0");
    expect([random.next(), random.next(), random.next()]).toEqual([
      0.10707905353046954, 0.012686916626989841, 0.4194534285925329,
    ]);
    expect(createSeededRandom("storefront/test/1").next()).not.toBe(
      createSeededRandom("storefront/test/0").next(),
    );
  });

  test("draws from all of a range, both ends included", () => {
    const random = createSeededRandom("range");
    const drawn = new Set(Array.from({ length: 200 }, () => random.between(3, 6)));
    expect([...drawn].toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6]);
  });

  test("shuffles without losing or changing the list", () => {
    const list = ["a", "b", "c", "d"];
    expect(createSeededRandom("list").shuffle(list).toSorted()).toEqual(list);
    expect(list).toEqual(["a", "b", "c", "d"]);
  });

  test("shuffles by drawing one after the other from those that are left, in their order", () => {
    for (let length = 0; length < 20; length++) {
      const list = Array.from({ length }, (_, index) => index);
      const random = createSeededRandom(`list ${length}`);
      const left = [...list];
      const drawn = list.map(() => left.splice(random.between(0, left.length - 1), 1)[0]);
      expect(createSeededRandom(`list ${length}`).shuffle(list)).toEqual(drawn);
    }
  });
});

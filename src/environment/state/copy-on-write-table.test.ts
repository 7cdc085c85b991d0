import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CopyOnWriteTable } from "./copy-on-write-table.ts";

type Frozen = readonly number[];

const base: ReadonlyMap<string, Frozen> = new Map([
  ["a", Object.freeze([1])],
  ["b", Object.freeze([2])],
]);

function openTable(): CopyOnWriteTable<Frozen, number[]> {
  return new CopyOnWriteTable<Frozen, number[]>({ base, copy: (record) => [...record] });
}

describe("CopyOnWriteTable", () => {
  test("`get()` gives the shared record itself until it is written", () => {
    const table = openTable();
    expect(table.get("a")).toBe(base.get("a"));
    expect(table.changes.size).toBe(0);
    table.own("a")?.push(9);
    expect(table.get("a")).toEqual([1, 9]);
    expect(table.own("a")).toBe(table.get("a"));
    expect(base.get("a")).toEqual([1]);
    expect([...table.changes]).toEqual([["a", [1, 9]]]);
  });

  test("two tables over one base do not see each other", () => {
    const first = openTable();
    const second = openTable();
    first.own("a")?.push(9);
    first.set("c", [3]);
    first.delete("b");
    expect([...second.entries()]).toEqual([
      ["a", [1]],
      ["b", [2]],
    ]);
  });

  test("`entries()` keeps the base's order and puts added records last", () => {
    const table = openTable();
    table.set("c", [3]);
    table.set("a", [7]);
    expect([...table.entries()]).toEqual([
      ["a", [7]],
      ["b", [2]],
      ["c", [3]],
    ]);
  });

  test("deleted records are gone, and may be added again", () => {
    const table = openTable();
    expect(table.delete("a")).toBe(true);
    expect(table.delete("a")).toBe(false);
    expect([table.has("a"), table.get("a"), table.own("a")]).toEqual([false, undefined, undefined]);
    table.set("a", [5]);
    expect(table.get("a")).toEqual([5]);
    table.set("c", [3]);
    table.delete("c");
    expect([...table.changes.keys()]).toEqual(["a"]);
  });

  test("behaves as a plain map would under any sequence of operations", () => {
    const id = fc.constantFrom("a", "b", "c", "__proto__", "10");
    const operation = fc.tuple(fc.constantFrom("own", "set", "delete", "has"), id, fc.nat(9));
    fc.assert(
      fc.property(fc.array(operation), (operations) => {
        const table = openTable();
        const model = new Map([...base].map(([key, record]) => [key, [...record]]));
        for (const [kind, key, value] of operations) {
          if (kind === "own") {
            table.own(key)?.push(value);
            model.get(key)?.push(value);
          } else if (kind === "set") {
            table.set(key, [value]);
            model.set(key, [value]);
          } else if (kind === "delete") {
            expect(table.delete(key)).toBe(model.delete(key));
          } else {
            expect(table.has(key)).toBe(model.has(key));
          }
        }
        expect(new Map(table.entries())).toEqual(model);
        expect([...base.values()]).toEqual([[1], [2]]);
      }),
    );
  });
});

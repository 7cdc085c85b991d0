import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { freezeDict } from "../../packages/python-values/src/frozen-value.ts";
import type { MutableValue } from "../../packages/python-values/src/mutable-value.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { DatabaseHasher } from "./database-hash.ts";
import { hashableText, sameDatabase } from "./database-text.ts";
import { dict } from "./containers.ts";
import { openTable } from "./record-table.ts";
import type { SharedTable, RecordTable } from "./record-table.ts";

const shared: Readonly<Record<string, SharedTable>> = {
  things: new Map([
    ["b", record({ name: "b", count: 1n })],
    ["\u{1F600}", record({ name: "it's" })],
    ["a", record({})],
    ["\uFFFD", record({ list: [1, 1n, true, null, "x"] })],
  ]),
  one: new Map([["only", record({ nested: [[]] })]]),
};

function record(members: Readonly<Record<string, MutableValue>>): PyDict {
  return freezeDict(dict(members));
}

function open(): { things: RecordTable; one: RecordTable } {
  return {
    things: openTable(shared["things"] as SharedTable),
    one: openTable(shared["one"] as SharedTable),
  };
}

/** The hash computed from the whole text at once. */
function plainHash(tables: Readonly<Record<string, RecordTable>>): string {
  const database = new Map<string, PyValue>(
    Object.entries(tables).map(([name, table]) => [name, new Map(table.entries())]),
  );
  return createHash("sha256").update(hashableText(database)).digest("hex");
}

describe("hashableText()", () => {
  test("prints nested tuples with sorted keys, as Python's repr() does", () => {
    const value: PyDict = new Map<string, PyValue>([
      ["\u{1F600}", 1],
      ["\uFFFD", [1n]],
      ["a", new Map([["b", null]])],
      ["e", []],
    ]);
    expect(hashableText(value)).toBe(
      "(('a', (('b', None),)), ('e', ()), ('\uFFFD', (1,)), ('\u{1F600}', 1.0))",
    );
  });

  test("does not distinguish a dictionary from a sorted list of its pairs, like τ-bench", () => {
    expect(hashableText(new Map([["a", 1n]]))).toBe(hashableText([["a", 1n]]));
  });
});

describe("DatabaseHasher", () => {
  const hasher = new DatabaseHasher(shared);

  test("hashes the base as a whole", async () => {
    expect(await hasher.hash(open())).toBe(plainHash(open()));
  });

  const changes: [string, (tables: ReturnType<typeof open>) => void][] = [
    ["one changed record", ({ things }) => things.own("b")?.set("count", 2n)],
    ["the last changed record", ({ things }) => things.own("\u{1F600}")?.set("name", "")],
    [
      "a record changed in each table",
      (tables) => {
        tables.things.own("a")?.set("x", 1);
        tables.one.own("only")?.set("x", "é");
      },
    ],
    [
      "records added between and around",
      ({ things }) => {
        for (const id of ["A", "az", "zz", "\u{1F601}"]) things.set(id, dict({ id }));
      },
    ],
    ["a deleted record", ({ things }) => things.delete("b")],
    [
      "all but one deleted",
      ({ things }) => {
        for (const id of ["a", "b", "\uFFFD"]) things.delete(id);
      },
    ],
    ["an empty table", ({ one }) => one.delete("only")],
    ["a second record beside the only one", ({ one }) => one.set("other", dict({}))],
  ];
  test.each(changes)("hashes %s", async (_name, change) => {
    const tables = open();
    change(tables);
    expect(await hasher.hash(tables)).toBe(plainHash(tables));
    expect(await hasher.hash(open())).toBe(plainHash(open()));
  });
});

describe("sameDatabase()", () => {
  test("compares values, not the fact of a write", () => {
    const [left, right] = [open(), open()];
    left.things.own("b")?.set("count", 2n);
    expect(sameDatabase(left, right)).toBe(false);
    left.things.own("b")?.set("count", 1n);
    expect(sameDatabase(left, right)).toBe(true);
    expect(sameDatabase(right, left)).toBe(true);
  });

  test("distinguishes integers from floats and a record from a missing one", () => {
    const [left, right] = [open(), open()];
    left.things.own("b")?.set("count", 1);
    expect(sameDatabase(left, right)).toBe(false);
    right.things.own("b")?.set("count", 1);
    right.things.set("new", dict({}));
    expect(sameDatabase(left, right)).toBe(false);
    expect(sameDatabase(right, left)).toBe(false);
    left.things.set("new", dict({}));
    expect(sameDatabase(left, right)).toBe(true);
  });
});

import { describe, expect, test } from "vitest";
import { NotPlain } from "../plain-text.ts";
import { findDifferences } from "./state-difference.ts";

class Account {
  readonly #cents: number;
  constructor(cents: number) {
    this.#cents = cents;
  }
  get cents(): number {
    return this.#cents;
  }
}

class Tag {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

const isAlike = (wanted: unknown, got: unknown): boolean =>
  findDifferences({ a: wanted }, { a: got }).state.length === 0;

describe("findDifferences()", () => {
  const account = new Account(5);
  test.each<[string, unknown, unknown]>([
    ["one instance", account, account],
    ["one instance in a Set", new Set([account]), new Set([account])],
    ["patterns", /a/g, /a/g],
    ["search parameters", new URLSearchParams("a=1"), new URLSearchParams("a=1")],
    ["addresses", new URL("http://a/"), new URL("http://a/")],
    ["buffers", new Uint8Array([1, 2]).buffer, new Uint8Array([1, 2]).buffer],
    ["views", new DataView(new ArrayBuffer(4), 1, 2), new DataView(new ArrayBuffer(2))],
    ["bytes", new Uint8Array([1, 2]), Buffer.from([1, 2])],
    ["numbers of other sizes", new Uint8Array([1, 2]), new Uint16Array([1, 2])],
    ["numbers that are NaN", new Float64Array([Number.NaN, -0]), new Float64Array([Number.NaN, 0])],
    ["no bytes", new Uint8Array(0), new Uint8Array(0)],
    ["bytes in Sets", new Set([new Uint8Array([1])]), new Set([new Uint8Array([1])])],
    ["NaN in Sets", new Set([Number.NaN]), new Set([Number.NaN])],
    ["Dates", new Date(0), new Date(0)],
    ["invalid Dates", new Date(Number.NaN), new Date("soon")],
    ["invalid Dates in Sets", new Set([new Date(Number.NaN)]), new Set([new Date("soon")])],
    ["instances with members", new Tag("x"), { name: "x" }],
    ["Maps and objects", new Map([["n", 1]]), { n: 1 }],
    ["objects of no class", Object.create(null), {}],
    ["objects that inherit", Object.create({ n: 1 }), Object.create({ n: 1 })],
    ["Sets in another order", new Set([1, 2]), new Set([2, 1])],
  ])("takes for alike %s", (_, wanted, got) => {
    expect(isAlike(wanted, got)).toBe(true);
  });

  test.each<[string, unknown, unknown]>([
    ["instances with private fields", new Account(5), new Account(10)],
    ["an instance instead of null", {}, new Account(10)],
    ["nothing for an instance", new Account(5), {}],
    ["instances in Sets", new Set([new Account(5)]), new Set([new Account(10)])],
    ["instances in lists in Sets", new Set([[new Account(5)]]), new Set([[new Account(10)]])],
    ["patterns", /5/, /10/],
    ["search parameters", new URLSearchParams("n=5"), new URLSearchParams("n=10")],
    ["buffers", new Uint8Array([5]).buffer, new Uint8Array([10]).buffer],
    ["a buffer and nothing", {}, new ArrayBuffer(3)],
    ["views", new DataView(new Uint8Array([5]).buffer), new DataView(new Uint8Array([10]).buffer)],
    ["bytes in Sets", new Set([new Uint8Array([5])]), new Set([new Uint8Array([10])])],
    ["a list and its bytes", [1, 2], new Uint8Array([1, 2])],
    ["errors", new Error("a"), new Error("b")],
    ["nothing and an invalid Date", null, new Date("soon")],
    ["an invalid Date and nothing", new Date("soon"), null],
    ["nothing and an invalid Date in Sets", new Set([null]), new Set([new Date("soon")])],
    ["Dates of which one is invalid", new Date(0), new Date("soon")],
    ["null and a value that is written as null", null, { toJSON: () => null }],
    ["a pattern and its text", "/5/", /5/],
  ])("distinguishes %s", (_, wanted, got) => {
    expect([isAlike(wanted, got), isAlike([{ b: wanted }], [{ b: got }])]).toEqual([false, false]);
    expect([isAlike([wanted], []), isAlike([], [got])]).toEqual([false, false]);
  });

  test("shows values that JSON lacks, on either side", () => {
    const data = new Uint8Array([1, 2, 3]);
    const wanted = { files: { a: { data } }, list: [/x/], account, level: Number.NaN };
    const got = { files: {}, list: [], account: new Account(10), level: 5 };
    expect(findDifferences(wanted, got)).toEqual({
      state: [
        { table: "files", record: "a", field: "", wanted: { data: "(Uint8Array of 3: 1, 2, 3)" } },
        { table: "list", record: "", field: "", wanted: ["(RegExp /x/)"], got: [] },
        {
          table: "account",
          record: "",
          field: "",
          wanted: "(Account without members to compare: add a toJSON())",
          got: "(Account without members to compare: add a toJSON())",
        },
        {
          table: "level",
          record: "",
          field: "",
          got: 5,
          wanted: "(cannot be written: it is NaN, which JSON does not have)",
        },
      ],
      moreState: 0,
    });
    expect(findDifferences({ data }, { data: new Uint8Array([1, 9]) }).state).toEqual([
      { table: "data", record: "1", field: "", wanted: 2, got: 9 },
      { table: "data", record: "2", field: "", wanted: 3 },
    ]);
  });

  test("shows an invalid Date", () => {
    expect(findDifferences({ due: null }, { due: new Date("soon") }).state).toEqual([
      { table: "due", record: "", field: "", wanted: null, got: "(Invalid Date)" },
    ]);
  });

  test("compares lists with holes, of any length", () => {
    const listOf = (length: number, items: object): unknown[] =>
      Object.assign([] as unknown[], { length }, items);
    const seats = listOf(3, { 2: "Ann" });
    expect(isAlike(seats, listOf(3, { 2: "Ann" }))).toBe(true);
    expect(isAlike(seats, [undefined, undefined, "Ann"])).toBe(true);
    expect(findDifferences({ seats: ["Bo", "Cy", "Ann"] }, { seats }).state).toEqual([
      { table: "seats", record: "0", field: "", wanted: "Bo" },
      { table: "seats", record: "1", field: "", wanted: "Cy" },
    ]);
    expect(findDifferences({ seats }, { seats: ["Bo", null, "Cy"] }).state).toEqual([
      { table: "seats", record: "2", field: "", wanted: "Ann", got: "Cy" },
      { table: "seats", record: "0", field: "", got: "Bo" },
      { table: "seats", record: "1", field: "", got: null },
    ]);
    expect(isAlike(Object.assign(["Ann"], { total: 1, "-1": "Bo" }), ["Ann"])).toBe(true);
    const far = listOf(4_000_000_000, { 3_999_999_999: "Ann" });
    expect(isAlike(far, [])).toBe(false);
    expect(isAlike(far, listOf(4_000_000_000, { 3_999_999_999: "Ann" }))).toBe(true);
    expect(findDifferences({ hall: { seats: ["Ann"] } }, { hall: { seats: far } }).state).toEqual([
      {
        table: "hall",
        record: "seats",
        field: "",
        wanted: ["Ann"],
        got: "(Array of 4000000000, most of them missing)",
      },
    ]);
  });

  test("refuses a Map with objects as keys, which have one name together", () => {
    const stock = new Map([[{ id: "a" }, 1]]);
    const [seat, day, place] = [account, new Date(0), [1, 2]];
    const refused = new NotPlain("its a.b has an object as a key, expected texts or numbers");
    const find = (wanted: unknown, got: unknown) => (): unknown =>
      findDifferences({ a: { b: wanted } }, { a: { b: got } });
    expect(find(stock, new Map([[{ id: "a" }, 1]]))).toThrow(refused);
    expect(find({}, stock)).toThrow(refused);
    expect(find(new Map([[seat, 1]]), {})).toThrow(refused);
    expect(find(new Map([[Object.create(null) as object, 1]]), {})).toThrow(refused);
    expect(isAlike(stock, stock)).toBe(true);
    const named = (n: number): object =>
      new Map<unknown, number>([day, place].map((key) => [key, n] as const));
    expect([isAlike(named(1), named(1)), isAlike(named(1), named(2))]).toEqual([true, false]);
  });

  test("refuses a promise as a wanted value", () => {
    for (const got of [5, undefined, {}]) {
      const find = (): unknown =>
        findDifferences({ a: { b: Promise.resolve(5) } }, { a: { b: got } });
      expect(find).toThrow(new NotPlain("its a.b is a promise (a forgotten await?)"));
    }
  });
});

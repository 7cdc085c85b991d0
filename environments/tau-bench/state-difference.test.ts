import { describe, expect, test } from "vitest";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { MutableDict } from "../../packages/python-values/src/mutable-value.ts";
import { isPyDict, type PyDict } from "../../packages/python-values/src/value.ts";
import { sameDatabase } from "./database-text.ts";
import { openTable } from "./record-table.ts";
import { stateDifference } from "./state-difference.ts";
import type { Tables } from "./tau-domain.ts";

const base = records(
  '{"#1": {"status": "pending", "items": [{"price": 10.0}, {"price": 2}], "note": null}, "#2": {}}',
);

function records(json: string): ReadonlyMap<string, PyDict> {
  const value = parsePythonJson(json);
  if (!isPyDict(value)) throw new Error("expected an object");
  return value as ReadonlyMap<string, PyDict>;
}

/** Orders with the given records put in their places; `null` deletes one. */
function database(changes: Readonly<Record<string, string | null>>): Tables {
  const orders = openTable(base);
  for (const [id, json] of Object.entries(changes)) {
    if (json === null) orders.delete(id);
    else orders.set(id, records(`{"record": ${json}}`).get("record") as MutableDict);
  }
  return { orders };
}

const original = '{"status": "pending", "items": [{"price": 10.0}, {"price": 2}], "note": null}';

describe("stateDifference()", () => {
  test("finds no difference if a record was only copied, or its fields moved", () => {
    const moved = '{"note": null, "items": [{"price": 10.0}, {"price": 2}], "status": "pending"}';
    expect(stateDifference(database({ "#1": original }), database({})).state).toEqual([]);
    expect(stateDifference(database({ "#1": moved }), database({ "#1": original })).state).toEqual(
      [],
    );
  });

  test.each<[string, Record<string, string | null>, Record<string, string | null>, object[]]>([
    [
      "fields, however deep",
      { "#1": '{"status": "cancelled", "items": [{"price": 10.5}, {"price": 2}], "note": "x"}' },
      {},
      [
        { record: "#1", field: "status", wanted: "pending", got: "cancelled" },
        { record: "#1", field: "items[0].price", wanted: 10, got: 10.5 },
        { record: "#1", field: "note", wanted: null, got: "x" },
      ],
    ],
    [
      "numbers that are alike but for their type",
      { "#1": '{"status": "pending", "items": [{"price": 10}, {"price": true}], "note": null}' },
      {},
      [
        {
          record: "#1",
          field: "items[0].price",
          wanted: 10,
          got: 10,
          note: "10.0 wanted, 10 got",
        },
        { record: "#1", field: "items[1].price", wanted: 2, got: true },
      ],
    ],
    [
      "values that JSON cannot represent",
      { "#1": '{"status": "pending", "items": [{"price": NaN}, {"price": 2}], "note": NaN}' },
      {},
      [
        {
          record: "#1",
          field: "items[0].price",
          wanted: 10,
          got: Number.NaN,
          note: "10.0 wanted, nan got",
        },
        {
          record: "#1",
          field: "note",
          wanted: null,
          got: Number.NaN,
          note: "None wanted, nan got",
        },
      ],
    ],
    [
      "items and members that are missing or too many",
      { "#1": '{"status": "pending", "items": [{"price": 10.0}], "note": null, "a-b": {"x": 1}}' },
      { "#1": '{"status": "pending", "items": [{"price": 10.0}, {"price": 2}], "tip": 1}' },
      [
        { record: "#1", field: "items[1]", wanted: { price: 2 } },
        { record: "#1", field: "tip", wanted: 1 },
        { record: "#1", field: "note", got: null },
        { record: "#1", field: '["a-b"]', got: { x: 1 } },
      ],
    ],
    [
      "whole records, in the order of their ids",
      { "#3": '{"status": "new"}', "#2": null },
      { "#1": null },
      [
        {
          record: "#1",
          field: "",
          got: { status: "pending", items: [{ price: 10 }, { price: 2 }], note: null },
        },
        { record: "#2", field: "", wanted: {} },
        { record: "#3", field: "", got: { status: "new" } },
      ],
    ],
  ])("finds %s", (_, reached, wanted, differences) => {
    const [left, right] = [database(reached), database(wanted)];
    expect(stateDifference(left, right)).toEqual({
      state: differences.map((difference) => ({ table: "orders", ...difference })),
    });
    expect(sameDatabase(left, right)).toBe(false);
  });

  test("shows a hundred places, and of each as much as can be read", () => {
    const many = Array.from({ length: 200_000 }, (_, index) => `"k${index}": ${index}`).join();
    const long = "x".repeat(5_000_000);
    const left = database({ "#1": `{"status": "${long}", "items": {${many}}}`, "#2": `{${many}}` });
    const { state, moreState } = stateDifference(left, database({}));
    expect(state).toHaveLength(100);
    expect(moreState).toBe(199_903);
    expect(state[0]).toEqual({
      table: "orders",
      record: "#1",
      field: "status",
      wanted: "pending",
      got: `${"x".repeat(2000)}…`,
    });
    expect(JSON.stringify(state[1]).length).toBeLessThan(10_000);
    expect(sameDatabase(left, database({}))).toBe(false);
  });
});

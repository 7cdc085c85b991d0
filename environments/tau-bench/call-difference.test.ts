import { describe, expect, test } from "vitest";
import { toPyValue, type PlainJson, type PyDict } from "../../packages/python-values/src/value.ts";
import { callDifference } from "./call-difference.ts";

const given = (value: PlainJson) => toPyValue(value) as PyDict;
const terminatingTools = new Set(["transfer"]);

describe("callDifference()", () => {
  test("matches calls by name and arguments, in any order, each once", () => {
    const cancel = { name: "cancel", arguments: given({ id: "#1", why: "late" }) };
    const again = { name: "cancel", arguments: given({ why: "late", id: "#1" }) };
    const found = { name: "get_order", arguments: given({ id: "#1" }) };
    const refused = { name: "modify", arguments: given({ id: 1 }), error: "Error: not found" };
    expect(
      callDifference({
        wanted: [
          { name: "get_user", kwargs: given({ id: "u" }) },
          { name: "cancel", kwargs: given({ id: "#1", why: "late" }) },
          { name: "transfer", kwargs: given({ summary: "some words" }) },
        ],
        made: [
          found,
          refused,
          cancel,
          again,
          { name: "transfer", arguments: given({ summary: "others" }) },
        ],
        terminatingTools,
      }),
    ).toEqual({
      missingCalls: [{ name: "get_user", argumentsText: '{"id": "u"}' }],
      extraCalls: [
        { name: "modify", argumentsText: '{"id": 1}', error: "Error: not found" },
        { name: "cancel", argumentsText: '{"why": "late", "id": "#1"}' },
      ],
    });
  });

  test("shows of long arguments and errors the beginning", () => {
    const address = "x".repeat(5_000_000);
    const { extraCalls } = callDifference({
      wanted: [],
      made: [{ name: "move", arguments: given({ address }), error: `Error: ${address}` }],
      terminatingTools,
    });
    expect(extraCalls).toEqual([
      {
        name: "move",
        argumentsText: `{"address": "${"x".repeat(1991)}…"}`,
        error: `Error: ${"x".repeat(1993)}…`,
      },
    ]);
  });

  test("distinguishes values that print alike, and matches nested values in another order", () => {
    const made = (value: PlainJson) => [{ name: "pay", arguments: given({ value }) }];
    const missing = (wanted: PlainJson, got: PlainJson) =>
      callDifference({
        wanted: [{ name: "pay", kwargs: given({ value: wanted }) }],
        made: made(got),
        terminatingTools,
      }).missingCalls.length;
    expect(missing([{ a: 1, b: [null] }], [{ b: [null], a: 1 }])).toBe(0);
    expect(missing([1, 2], [1])).toBe(1);
    expect(missing([1], [1, 2])).toBe(1);
    expect(missing({ a: 1 }, { b: 1 })).toBe(1);
    expect(missing("1", 1)).toBe(1);
    expect(missing(true, 1)).toBe(1);
  });

  test("distinguishes an integer from a float", () => {
    expect(
      callDifference({
        wanted: [{ name: "pay", kwargs: new Map([["amount", 5n]]) }],
        made: [{ name: "pay", arguments: new Map([["amount", 5]]) }],
        terminatingTools,
      }),
    ).toEqual({
      missingCalls: [{ name: "pay", argumentsText: '{"amount": 5}' }],
      extraCalls: [{ name: "pay", argumentsText: '{"amount": 5.0}' }],
    });
  });
});

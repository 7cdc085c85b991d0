import { describe, expect, test } from "vitest";
import { toPyValue, type PlainJson, type PyDict } from "../../src/python/value.ts";
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

  test("tells an integer from a float", () => {
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

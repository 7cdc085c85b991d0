import { describe, expect, test } from "vitest";
import { findFormError, containsMarkup, isThinkingMalformed, toAttemptPlace } from "./turn-form.ts";

const markup = { opener: "<think>", closer: "</think>" };

describe("isThinkingMalformed()", () => {
  test.each([
    ["Hello.", false, false],
    ["<think>a</think>Hello.", false, false],
    ["a</think>Hello.", true, false],
    ["</think>Hello.", true, false],
    ["a</think>Hello.", false, true],
    ["<think>a", false, true],
    ["a", true, true],
    ["<think>a</think>", true, true],
    ["<think>a</think>b</think>", false, true],
    ["<think>a</think><think>b</think>", false, true],
    ["<think><think>a</think>", false, true],
  ])("of %j, opened by the prompt: %j, is %j", (text, opened, expected) => {
    const facts = { markup, opened, finish: "stop", calls: [] } as const;
    expect(isThinkingMalformed(text, facts)).toBe(expected);
  });

  test("accepts reasoning that was cut off", () => {
    const facts = { markup, opened: false, finish: "length", calls: [] } as const;
    expect(isThinkingMalformed("<think>a", facts)).toBe(false);
  });

  test("ignores the arguments of calls", () => {
    const text = "<think>a</think>CALL(<think>)CALL(</think>)";
    const calls = [
      [16, 29],
      [29, text.length],
    ] as const;
    const facts = { markup, opened: false, finish: "stop" } as const;
    expect(isThinkingMalformed(text, { ...facts, calls })).toBe(false);
    expect(isThinkingMalformed(text, { ...facts, calls: calls.slice(1) })).toBe(true);
  });
});

describe("containsMarkup()", () => {
  test.each([
    ["Hello.", false],
    ["Use <tool_call> for that.", true],
    ["Done.\n</tool_call>", true],
    ["[TOOL_CALLS]", true],
    ["a < b", false],
  ])("of %j is %j", (text, expected) => {
    expect(containsMarkup(text, ["<tool_call>", "[TOOL_CALLS]"])).toBe(expected);
  });
});

describe("findFormError()", () => {
  test("skips attempts that were not meant as calls", () => {
    const attempts = [
      { status: "in-reasoning" },
      { status: "marker-only" },
      { status: "ok" },
      { status: "unknown-tool" },
      { status: "invalid-json" },
    ] as const;
    expect(findFormError(attempts)).toBe(attempts[3]);
    expect(findFormError(attempts.slice(0, 3))).toBeUndefined();
  });
});

describe("toAttemptPlace()", () => {
  test("keeps name and notes, each note once", () => {
    const statuses = ["truncated-by-length", "trailing-text", "trailing-text"] as const;
    expect(
      toAttemptPlace({
        status: "truncated-by-length",
        diagnostics: statuses.map((status) => ({ status, detail: "" })),
        raw: "CALL",
        span: [3, 7],
        name: "act",
        argumentsText: "{}",
      }),
    ).toEqual({
      status: "truncated-by-length",
      name: "act",
      span: [3, 7],
      notes: ["trailing-text"],
    });
  });
});

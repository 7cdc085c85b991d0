import { describe, expect, test } from "vitest";
import { failureOfOutcome, readErrorMessage } from "./http-failure.ts";

describe("`readErrorMessage()`", () => {
  test.each([
    ['{"error": {"message": "too long"}}', "too long"],
    ['{"object": "error", "message": "full", "type": "503", "code": 503}', "full"],
    ['{"error": {"type": "t", "code": "c", "message": "no workers"}}', "no workers"],
    ['{"error": "Unauthorized"}', "Unauthorized"],
    ['{"detail": "Not Found"}', "Not Found"],
    ['"text"', "text"],
    ["", ""],
    ["  two\n lines ", "two lines"],
    ["null", "null"],
    ["[1]", "[1]"],
    ['{"error": {"code": 7}}', '{"error": {"code": 7}}'],
  ])("reads %s as %s", (body, message) => {
    expect(readErrorMessage(body)).toBe(message);
  });

  test("shortens long messages", () => {
    expect(readErrorMessage("x".repeat(1_000))).toBe(`${"x".repeat(300)}…`);
  });
});

test("`failureOfOutcome()` reads the error of the first of several addresses", () => {
  const refused = new Error("connect ECONNREFUSED ::1:1");
  const cause = new AggregateError([refused, new Error("connect ECONNREFUSED 127.0.0.1:1")]);
  const failure = failureOfOutcome({ type: "broken", sent: false, cause }, 5);
  expect(failure).toMatchObject({
    code: "engine/unreachable",
    problem: "no connection (connect ECONNREFUSED ::1:1)",
    retry: true,
    maySample: false,
  });
});

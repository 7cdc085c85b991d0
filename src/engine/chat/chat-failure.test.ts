import { expect, test } from "vitest";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { classifyChatError } from "./chat-failure.ts";

test("a long error message is cut after its keys are removed", () => {
  hideEverywhere({ secrets: ["complaint-canary-0123456789"] });
  const text = `${"x".repeat(280)} complaint-canary-0123456789 is no key of ours`;
  const error = Object.assign(new Error(text), { statusCode: 401 });
  const { message } = classifyChatError(error, { now: () => 0 });
  expect(message).toBe(`HTTP 401: ${"x".repeat(280)} [redacted] is no k…`);
});

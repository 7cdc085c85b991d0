import { expect, test } from "vitest";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { readAnswer } from "./mcp-answer.ts";

test("an answer is cut before a key, and not within it", () => {
  hideEverywhere({ secrets: ["answer-canary-0123456789"] });
  const text = `key: answer-canary-0123456789 ${"y".repeat(50)}`;
  const { text: shown } = readAnswer(
    { content: [{ type: "text", text }] },
    { tool: "show", maxLength: 20 },
  );
  expect(shown).toBe("key: \n[75 more characters were left out]");
});

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

const structuredOf = (texts: readonly string[], structuredText: string): string => {
  const content = texts.map((text) => ({ type: "text", text }));
  const result = { content, structuredContent: {}, structuredText };
  return readAnswer(result, { tool: "show", maxLength: 1_000_000 }).text;
};

test.each([
  [["issues listed"], '{"issues": [{"id": 7, "title": "Crash"}]}'],
  [["done"], '{"ok": true}'],
  [["10 found"], '{"count": 1}'],
  [["1 found"], '{"count": 9007199254740993}'],
  [["9007199254740992"], '{"count": 9007199254740993}'],
])("structured content stands below texts %j that lack one of its values", (texts, structured) => {
  expect(structuredOf(texts, structured)).toBe(`${texts.join("\n")}\n${structured}`);
});

test.each([
  [["2"], '{"result": 2}'],
  [["2.50"], '{"result": 2.5}'],
  [["caf\u00e9"], '{"result": "caf\u00e9"}'],
  [
    ['{"name": "caf\\u00e9", "id": 9007199254740993}'],
    '{"name": "caf\u00e9", "id": 9007199254740993}',
  ],
  [["a", "b"], '{"result": ["a", "b"]}'],
  [['say "hi"'], '{"text": "say \\"hi\\""}'],
  [["| Open | True |"], '{"state": "Open", "locked": true, "by": null}'],
])("structured content is left out if the texts %j have its values", (texts, structured) => {
  expect(structuredOf(texts, structured)).toBe(texts.join("\n"));
});

test("structured content is the answer if there is no text", () => {
  expect(structuredOf([], '{"id": 12345678901234567890}')).toBe('{"id": 12345678901234567890}');
  expect(structuredOf([""], '{"id": 1}')).toBe('{"id": 1}');
  expect(structuredOf([""], "null")).toBe("");
});

test("structured content of any size and depth is compared in bounded time", () => {
  const many = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => `v${index}`));
  expect(structuredOf([`${many} `], many)).toHaveLength(many.length + 1);
  expect(structuredOf([`All: ${many}`], many)).toHaveLength(2 * many.length + 6);
  const wave = "ab".repeat(200_000);
  expect(structuredOf([wave], JSON.stringify([`${wave.slice(2)}b`]))).toHaveLength(800_004);
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  expect(structuredOf([deep], '{"id": 1}')).toHaveLength(deep.length + 10);
});

test.each([
  [{ uri: "file:///notes/a.txt", name: "a.txt" }, "file:///notes/a.txt"],
  [{ uri: "db://7", name: "orders", title: "Orders of May" }, "db://7 (Orders of May)"],
  [
    { uri: "db://7", name: "orders", description: "One row an order", mimeType: "text/csv" },
    "db://7 (orders): One row an order",
  ],
  [{ uri: "db://7", name: "db://7", description: "" }, "db://7"],
])("a link has the name and the description that the server gave it", (link, text) => {
  const content = [{ type: "resource_link", ...link }];
  expect(readAnswer({ content }, { tool: "find", maxLength: 1000 })).toEqual({
    text,
    isError: false,
  });
});

import { describe, expect, test } from "vitest";
import { readTextAction } from "./read-text-action.ts";

describe("readTextAction()", () => {
  test.each([
    ["after its label", 'Thought:\nhm\nAction:\n{"name": "f", "arguments": {"x": 1}}'],
    ["without a label", ' {"name": "f", "arguments": {"x": 1}}\n'],
    ["after the last of several labels", 'Action: a Action: {"name": "f", "arguments": {"x": 1}}'],
    ["with more beside it", '{"id": 3, "name": "g", "name": "f", "arguments": {"x": 1}}'],
  ])("finds an action %s", (_, text) => {
    expect(readTextAction(text)).toEqual({
      type: "action",
      name: "f",
      arguments: new Map([["x", 1n]]),
    });
  });

  test.each([
    ["just talking ", "just talking", false],
    ["", "", false],
    ["Action:", "", true],
    ["Thought: x\nAction:\n```json\n{}\n```", "```json\n{}\n```", true],
    ['{"name": respond, "arguments": {}}', '{"name": respond, "arguments": {}}', true],
    ["Action: \uFEFF{}", "\uFEFF{}", true],
  ])("reads %j as text", (text, said, isAttempt) => {
    expect(readTextAction(text)).toEqual({ type: "text", text: said, isAttempt });
  });

  test.each([
    ["5", "malformed-structure", 'must be a JSON object with "name" and "arguments"'],
    ["null", "malformed-structure", 'must be a JSON object with "name" and "arguments"'],
    ['"name arguments"', "malformed-structure", "must be a JSON object"],
    ['["name", "arguments"]', "malformed-structure", "must be a JSON object"],
    ['{"arguments": {}}', "missing-name", 'the action has no "name"'],
    ['{"name": "f"}', "malformed-structure", 'the action has no "arguments"'],
    [
      '{"name": 1, "arguments": {}}',
      "malformed-structure",
      '"name" of the action must be a string',
    ],
    ['{"name": "f", "arguments": "x"}', "non-object-arguments", "must be a JSON object"],
    ['{"name": "f", "arguments": null}', "non-object-arguments", "must be a JSON object"],
    ['{"name": "respond", "arguments": {}}', "schema-mismatch", 'has no argument "content"'],
    ["[".repeat(5000), "invalid-json", "maximum recursion depth exceeded"],
    ["1".repeat(5000), "invalid-json", "cannot be read: Exceeds the limit"],
  ])("explains the mistake of %.40s", (json, status, observation) => {
    const action = readTextAction(`Action: ${json}`);
    expect(action).toMatchObject({ type: "mistake", status });
    expect(action).toHaveProperty("observation", expect.stringContaining(observation));
    expect(action).toHaveProperty("observation", expect.stringMatching(/^Error: /));
  });
});

import { expect, test } from "vitest";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { toolsFromOpenAi } from "../../message.ts";
import type { RequestedTurn } from "../conversation.ts";
import { labelsOf } from "./client-labels.ts";

const title = { type: "json-schema", schema: { properties: { title: {} } } };
const textFormat = title as unknown as NonNullable<RequestedTurn["textFormat"]>;
const claude = { "x-claude-code-session-id": "s" };

test("an object with a title only is a conversation's title if Claude Code asks for it without tools", () => {
  const look = parsePythonJson(`[{"type": "function", "function": {"name": "look"}}]`);
  const tools = toolsFromOpenAi(look, "tools");
  const labels = labelsOf(new Headers(claude), { textFormat, tools: [] });
  expect(labels).toEqual({ ...claude, "reply-form": "title" });
  expect(labelsOf(new Headers(claude), { textFormat, tools })).toEqual(claude);
  expect(labelsOf(new Headers(), { textFormat, tools: [] })).toEqual({});
});

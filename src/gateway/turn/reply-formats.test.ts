import { expect, test } from "vitest";
import { toolsFromOpenAi } from "../../message.ts";
import type { PyDict, PyList } from "../../../packages/python-values/src/value.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { replyFormats } from "./reply-formats.ts";

test("replyFormats() reads turns by the model's own response template", () => {
  const fields = {
    thinking: { open: "<t>", close: "</t>" },
    tool_calls: {
      open: "<c>",
      close: "</c>",
      content: "json",
      transform: { function: { name: "f", arguments: "{content}" } },
    },
  };
  const name = "response_template";
  const renderer = {
    card: { source: "m", stopLiterals: ["<e>"], parser: name, reasoningParser: name },
    codec: { addedTokens: [] },
    responseTemplate: toPyValue({ start_anchor: "<a>", fields }) as PyDict,
  };
  const formats = replyFormats(renderer as unknown as Renderer);
  const stream = formats.createReasoningStream?.({ opened: false });
  const parts = [stream?.push('<t>b</t>d<c>{"a": 1}</c>'), stream?.end()];
  expect(parts.map((part) => part?.reasoning).join("")).toBe("b");
  const named = toPyValue([{ type: "function", function: { name: "f" } }]) as PyList;
  const tools = toolsFromOpenAi(named, "tools");
  const rest = parts.map((part) => part?.normalText).join("");
  const { calls, normalText } =
    formats.parser?.parse(rest, { ...formats.parseOptions, tools }).compat ?? {};
  expect(normalText).toBe("d");
  expect(calls?.map((call) => [call.name, call.argumentsText])).toEqual([["f", '{"a": 1}']]);
});

import { expect, test } from "vitest";
import { UsageError } from "../../python-values/src/support/index.ts";
import { createToolDefinitions } from "./create-tool-definitions.ts";

test("reads plain tools in OpenAI's shape", () => {
  const [tool] = createToolDefinitions([
    { type: "function", function: { name: "find", parameters: { type: "object", maxItems: 1 } } },
  ]);
  expect(tool!.name).toBe("find");
  const parameters = new Map<string, string | bigint>([
    ["type", "object"],
    ["maxItems", 1n],
  ]);
  expect(tool!.openai.get("function")).toEqual(
    new Map<string, unknown>([
      ["name", "find"],
      ["parameters", parameters],
    ]),
  );
});

test("refuses a tool without a name", () => {
  const read = () => createToolDefinitions([{ type: "function", function: {} }]);
  expect(read).toThrow(UsageError);
  expect(read).toThrow("Cannot read the tools[0]: expected");
});

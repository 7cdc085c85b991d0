import { toPyValue, type PlainJson } from "../../python-values/src/index.ts";
import { toolsFromOpenAi, type ToolDefinition } from "./tool-definition.ts";

/**
 * Reads tools in OpenAI's shape (`{type: "function", function: {name, description, parameters}}`) from plain objects.
 *
 * @throws UsageError if an entry has no `function.name`.
 */
export function createToolDefinitions(tools: readonly object[]): readonly ToolDefinition[] {
  return toolsFromOpenAi(toPyValue(tools as PlainJson), "the tools");
}

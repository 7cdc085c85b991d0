import type { ToolDefinition } from "../../message.ts";
import { defineForeignTool } from "../define-tool.ts";
import type { CallableTool } from "../tool-call.ts";
import type { PythonTool } from "./python-answers.ts";

/** The time limit of a call without one of its own, in milliseconds. */
const defaultTimeoutMs = 30_000;

/** A tool that Python performs. */
export interface PythonToolCall {
  readonly definition: ToolDefinition;
  readonly callable: CallableTool<unknown>;
}

/** Returns the tools that the Python side describes. `report` gets the parts of their schemas that are not checked. */
export function toTools(
  described: readonly PythonTool[],
  report: (trouble: string) => void,
): ReadonlyMap<string, PythonToolCall> {
  const found = new Map<string, PythonToolCall>();
  for (const { name, description, parameters, timeoutMs = defaultTimeoutMs, ends } of described) {
    const { tool, unusable } = defineForeignTool({
      name,
      description,
      parameters,
      timeoutMs,
      ...(ends !== undefined && { ends }),
      execute: () => undefined,
    });
    for (const part of unusable) report(`tool ${name}: the arguments are not checked by ${part}`);
    const { definition, callable } = tool;
    found.set(name, { definition, callable: { ...callable, takesExact: true } });
  }
  return found;
}

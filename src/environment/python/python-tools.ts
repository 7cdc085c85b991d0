import { WrittenJson, exactOf, writeCompactJson } from "../../json/exact-json.ts";
import { defineForeignTool, type Tool } from "../define-tool.ts";
import { refuse } from "../refuse.ts";
import type { PythonCallAnswer, PythonTool } from "./python-answers.ts";

/** The time limit of a call without one of its own, in milliseconds. */
const defaultTimeoutMs = 30_000;

/** The time in which the Python side interrupts an overdue call and says where it was, in milliseconds. */
const interruptMs = 5_000;

/** The state of the tools: performs calls of one episode. */
export interface PythonCalls {
  call(
    name: string,
    given: WrittenJson,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<PythonCallAnswer>;
}

/** Returns the tools that the Python side describes. `report` gets the parts of their schemas that are not checked. */
export function toTools(
  described: readonly PythonTool[],
  report: (trouble: string) => void,
): ReadonlyMap<string, Tool<PythonCalls>> {
  const found = new Map<string, Tool<PythonCalls>>();
  for (const { name, description, parameters, timeoutMs = defaultTimeoutMs, ends = false } of described) {
    const { tool, unusable } = defineForeignTool<unknown, PythonCalls>({
      name,
      description,
      parameters,
      ends,
      timeoutMs: timeoutMs + interruptMs,
      execute: async (_, calls, { exactArguments, signal, stop }) => {
        const given = new WrittenJson(writeCompactJson(exactOf(exactArguments)));
        const answer = await calls.call(name, given, { timeoutMs, signal });
        if (answer.ends === true && !ends) stop();
        return answer.isError === true ? refuse(answer.text) : answer.text;
      },
    });
    for (const part of unusable) report(`tool ${name}: the arguments are not checked by ${part}`);
    found.set(name, { ...tool, callable: { ...tool.callable, takesExact: true } });
  }
  return found;
}

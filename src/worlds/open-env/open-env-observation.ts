import { z } from "zod";
import { RolloutError } from "../../errors.ts";
import { refuse } from "../../environment/refuse.ts";
import { readListedTool, type ListedTool } from "../mcp/listed-tool.ts";
import { readAnswer } from "../mcp/mcp-answer.ts";
import { exactOf, writeCompactJson } from "../../json/exact-json.ts";
import type { PyDict } from "../../../packages/python-values/src/value.ts";

/** Maximum length of an observation for the agent, in characters. */
const maxLength = 100_000;

const toolsSchema = z.array(z.looseObject({ input_schema: z.unknown() }));

/**
 * Reads the tools in an observation of `list_tools`. A tool that cannot be used is left out and
 * reported.
 */
export function readListedTools(
  observation: Readonly<Record<string, unknown>>,
  report: (trouble: string) => void,
): readonly ListedTool[] {
  const parsed = toolsSchema.safeParse(observation["tools"]);
  if (!parsed.success) {
    throw new RolloutError("environment/bad-step", "its tools cannot be read");
  }
  return parsed.data.flatMap((sent) => {
    const read = readListedTool({ ...sent, inputSchema: sent.input_schema });
    if (!("problem" in read)) return [read];
    report(`a tool is left out: ${read.problem}`);
    return [];
  });
}

/** The part of a tool's answer that holds its text. */
const calledSchema = z.object({
  tool_name: z.string(),
  result: z.unknown(),
  error: z.object({ error_type: z.string(), message: z.string() }).nullish(),
});

const resultSchema = z.object({
  content: z.array(z.unknown()),
  is_error: z.boolean().nullish(),
});

/** Codes of the caller's mistakes. Every other code is an outage. */
const mistakes = new Set(["execution_error", "invalid_args", "tool_not_found"]);

/**
 * Returns an observation as the text for the agent: a tool's text, a single text as it is, or JSON
 * otherwise. Leaves out the members for the trainer only.
 * @throws ToolRefusal if a tool reports a wrong call.
 * @throws RolloutError if the tool could not be called.
 */
export function describeObservation(observation: Readonly<Record<string, unknown>>): string {
  const called = calledSchema.safeParse(observation);
  if (called.success) return describeCall(called.data, exactOf(observation) as PyDict);
  const shown = new Map(exactOf(observation) as PyDict);
  for (const name of ["metadata", "done", "reward"]) shown.delete(name);
  const [only] = shown.values();
  const text = shown.size === 1 && typeof only === "string" ? only : writeCompactJson(shown);
  return readAnswer({ content: [{ type: "text", text }] }, { tool: "act", maxLength }).text;
}

function describeCall(
  { tool_name: tool, result, error }: z.infer<typeof calledSchema>,
  exact: PyDict,
): string {
  if (error) {
    if (mistakes.has(error.error_type)) refuse(withoutError(error.message));
    throw new RolloutError(
      error.error_type === "timeout" ? "environment/timeout" : "environment/exception",
      `Cannot call tool ${tool} of the OpenEnv server: ${error.message}`,
      { retryable: true },
    );
  }
  const read = resultSchema.safeParse(result);
  const text = typeof result === "string" ? result : writeCompactJson(exact.get("result") ?? null);
  const content = read.success ? read.data.content : [{ type: "text", text }];
  const answer = readAnswer({ content }, { tool, maxLength });
  if (read.success && read.data.is_error === true) refuse(withoutError(answer.text));
  return answer.text;
}

/** Removes the word "Error" from the start of a text, because `refuse()` adds the word. */
function withoutError(text: string): string {
  return text.replace(/^error:\s*/i, "");
}

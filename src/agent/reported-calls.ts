import type { ToolDefinition } from "../message.ts";
import type {
  Attempt,
  AttemptStatus,
  CompatCall,
} from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";

/**
 * Converts a turn's attempts to the view of the engine's parser. A call that it reports is `ok` if
 * the tool exists and the arguments are an object. An attempt that it does not report is malformed.
 * Each reported call is matched to the attempt with the same name and arguments, otherwise to the
 * first unmatched attempt. The remaining reported calls are appended.
 *
 * @param attempts - The attempts that were meant as calls.
 */
export function asReported(
  attempts: readonly Attempt[],
  calls: readonly CompatCall[],
  turn: { readonly tools: readonly ToolDefinition[]; readonly finish: "stop" | "length" },
): readonly Attempt[] {
  const remaining = calls.map(withArguments);
  const matched = new Map<Attempt, CompatCall>();
  for (const attempt of attempts) {
    const index = remaining.findIndex(
      ({ name, argumentsText }) => name === attempt.name && argumentsText === attempt.argumentsText,
    );
    const [call] = index === -1 ? [] : remaining.splice(index, 1);
    if (call !== undefined) matched.set(attempt, call);
  }
  for (const attempt of attempts) {
    const call = matched.has(attempt) ? undefined : remaining.shift();
    if (call !== undefined) matched.set(attempt, call);
  }
  return [
    ...attempts.map((attempt) => {
      const call = matched.get(attempt);
      if (call !== undefined) return { ...attempt, ...readCall(call, turn) };
      return attempt.status === "ok" ? { ...attempt, status: notReported } : attempt;
    }),
    ...remaining.map((call) => ({ ...withoutPosition, ...readCall(call, turn) })),
  ];
}

/** Some engines return empty text for a call without arguments. */
function withArguments(call: CompatCall): CompatCall {
  return call.argumentsText === "" ? { ...call, argumentsText: "{}" } : call;
}

const notReported: AttemptStatus = "malformed-structure";

/** The position of a reported call that matches no attempt. */
const withoutPosition = { raw: "", span: [0, 0], diagnostics: [] } as const;

function readCall(
  { name, argumentsText }: CompatCall,
  { tools, finish }: Parameters<typeof asReported>[2],
): Pick<Attempt, "status" | "name" | "argumentsText"> {
  const call = { name, argumentsText };
  if (finish === "length") return { ...call, status: "truncated-by-length" };
  if (!tools.some((tool) => tool.name === name)) return { ...call, status: "unknown-tool" };
  return { ...call, status: judgeArguments(argumentsText) };
}

function judgeArguments(text: string): AttemptStatus {
  try {
    return isPyDict(parsePythonJson(text)) ? "ok" : "non-object-arguments";
  } catch (error) {
    if (error instanceof PythonError) return "invalid-json";
    throw error;
  }
}

import type { ToolDefinition } from "../message.ts";
import type { Attempt, AttemptStatus, CompatCall } from "../parser/tool-call-parser.ts";
import { parsePythonJson } from "../python/json/json-parse.ts";
import { PythonError } from "../python/python-error.ts";
import { isPyDict } from "../python/value.ts";

/**
 * The attempts of a turn as the engine's parser sees them: what it reports is in order whatever it is,
 * as long as there is such a tool and the arguments are an object, and what it does not report is
 * malformed. Each reported call belongs to the attempt that holds it, or else to the first that nothing
 * belongs to; those that remain stand at the end.
 *
 * @param attempts - Those that were meant as calls.
 */
export function asReported(
  attempts: readonly Attempt[],
  calls: readonly CompatCall[],
  turn: { readonly tools: readonly ToolDefinition[]; readonly finish: "stop" | "length" },
): readonly Attempt[] {
  const remaining = calls.map(withArguments);
  const owned = new Map<Attempt, CompatCall>();
  for (const attempt of attempts) {
    const index = remaining.findIndex(
      ({ name, argumentsText }) => name === attempt.name && argumentsText === attempt.argumentsText,
    );
    const [call] = index === -1 ? [] : remaining.splice(index, 1);
    if (call !== undefined) owned.set(attempt, call);
  }
  for (const attempt of attempts) {
    const call = owned.has(attempt) ? undefined : remaining.shift();
    if (call !== undefined) owned.set(attempt, call);
  }
  return [
    ...attempts.map((attempt) => {
      const call = owned.get(attempt);
      if (call !== undefined) return { ...attempt, ...readCall(call, turn) };
      return attempt.status === "ok" ? { ...attempt, status: notReported } : attempt;
    }),
    ...remaining.map((call) => ({ ...nowhere, ...readCall(call, turn) })),
  ];
}

/** No text at all is how some engines hand on a call without arguments. */
function withArguments(call: CompatCall): CompatCall {
  return call.argumentsText === "" ? { ...call, argumentsText: "{}" } : call;
}

const notReported: AttemptStatus = "malformed-structure";

/** A call that the engine made of something that is no attempt. */
const nowhere = { raw: "", span: [0, 0], diagnostics: [] } as const;

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

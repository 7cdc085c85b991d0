import type { PlainJson, PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import { toPyValue } from "../../../packages/python-values/src/value.ts";

/** A call in a probe conversation. */
export interface ProbeCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, string>>;
}

/** The content of a probe's assistant turn. */
interface ProbeTurn {
  readonly content: string;
  readonly reasoning?: string;
  readonly calls?: readonly ProbeCall[];
}

/** The tools that probe conversations offer. */
export const probeTools = toPyValue([
  probeTool("find_parcel", "Finds a parcel.", "parcel_id"),
  probeTool("return_parcel", "Sends a parcel back.", "parcel_id"),
]) as readonly PyValue[];

/** A system message. */
export function systemMessage(content: string): PyDict {
  return dictionary({ role: "system", content });
}

/** A user message. */
export function userMessage(content: string): PyDict {
  return dictionary({ role: "user", content });
}

/** An assistant message with the given reasoning and calls, if any. */
export function assistantMessage({ content, reasoning, calls }: ProbeTurn): PyDict {
  return dictionary({
    role: "assistant",
    content,
    reasoning_content: reasoning,
    tool_calls: calls?.map(({ id, name, arguments: values }) => ({
      id,
      type: "function",
      function: { name, arguments: values },
    })),
  });
}

/** The result of a call. */
export function toolMessage({ id, name }: ProbeCall, content: string): PyDict {
  return dictionary({ role: "tool", tool_call_id: id, name, content });
}

function probeTool(name: string, description: string, parameter: string): PlainJson {
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: {
        type: "object",
        properties: { [parameter]: { type: "string", description: "its number" } },
        required: [parameter],
      },
    },
  };
}

function dictionary(value: PlainJson): PyDict {
  return toPyValue(value) as PyDict;
}

import { toAttempts, type Block } from "../../packages/tool-parsers/src/attempt.ts";
import { createParseContext } from "../../packages/tool-parsers/src/parse-context.ts";
import type { Attempt } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import type { ChatToolCall } from "../engine/chat/chat-turn.ts";
import type { ToolDefinition } from "../message.ts";

/**
 * Judges the calls of a turn that an engine returned as a message, by the same rules as calls in sampled text: unknown
 * tools, arguments that are not a JSON object or do not match the tool's schema, and repeated calls.
 */
export function judgeChatCalls(
  calls: readonly ChatToolCall[],
  {
    tools,
    finish,
  }: { readonly tools: readonly ToolDefinition[]; readonly finish: "stop" | "length" },
): readonly Attempt[] {
  const text = calls.map(({ argumentsText }) => argumentsText).join("");
  let start = 0;
  const blocks = calls.map((call): Block => {
    const end = start + call.argumentsText.length;
    const block = toBlock(call, [start, end]);
    start = end;
    return block;
  });
  const reported = calls.map(({ name = "", argumentsText }, toolIndex) => ({
    name,
    argumentsText,
    toolIndex,
  }));
  return toAttempts(blocks, {
    text,
    context: createParseContext({ tools }),
    compat: { normalText: "", calls: reported, raises: false },
    readsReasoning: true,
    closers: undefined,
    finishReason: finish,
  });
}

function toBlock({ id, name, argumentsText }: ChatToolCall, span: Block["span"]): Block {
  const about = {
    span,
    argumentsText,
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
  };
  try {
    return { ...about, argumentValue: parsePythonJson(argumentsText) };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    const detail = `the arguments are not JSON: ${error.message}`;
    return { ...about, problem: { status: "invalid-json", detail } };
  }
}
